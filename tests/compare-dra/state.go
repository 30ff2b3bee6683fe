package main

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"sort"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

const (
	cardDriver = "card.example.com"
	nicDriver  = "nic.example.com"
)

// entry is one of the pod's spec.resourceClaims.
type entry struct {
	named string // a ResourceClaim, else there is a template
	spec  resourceapi.ResourceClaimSpec
}

// state is a small cluster and a gang that wants to start there.
type state struct {
	seed    int64
	random  *rand.Rand
	kinds   map[string]bool // what is special about it
	nodes   []*corev1.Node
	classes []*resourceapi.DeviceClass
	slices  []*resourceapi.ResourceSlice
	claims  []*resourceapi.ResourceClaim // that are there already
	gang                                 // that wants to start
	other   *gang                        // another one in front of it, nil: there is none
}

type gang struct {
	name    string
	entries []entry
	pods    int
	pin     map[string]string // the nodeSelector that the plan adds to the pods

	isAdmitted bool
}

func (s *state) chance(percent int) bool { return s.random.Intn(100) < percent }

func (s *state) kind() string {
	var all []string
	for kind := range s.kinds {
		all = append(all, kind)
	}
	sort.Strings(all)
	if len(all) == 0 {
		return "plain"
	}
	return strings.Join(all, "+")
}

func (s *state) addNode(name string) { s.addNodeWithRoom(name, 20) }

func (s *state) addNodeWithRoom(name string, percentSmall int) {
	pods := int64(20)
	if s.chance(percentSmall) {
		pods = int64(1 + s.random.Intn(3))
	}
	s.nodes = append(s.nodes, &corev1.Node{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"kubernetes.io/hostname": name, "hall": []string{"north", "south"}[s.random.Intn(2)]}},
		Status: corev1.NodeStatus{
			Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("64Gi"),
				corev1.ResourcePods: *resource.NewQuantity(pods, resource.DecimalSI)},
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	})
}

func (s *state) addClass(name, expression string) {
	class := &resourceapi.DeviceClass{
		TypeMeta:   metav1.TypeMeta{APIVersion: "resource.k8s.io/v1", Kind: "DeviceClass"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
	}
	if expression != "" {
		class.Spec.Selectors = []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{Expression: expression}}}
	}
	s.classes = append(s.classes, class)
}

func (s *state) attributes(node string) map[resourceapi.QualifiedName]resourceapi.DeviceAttribute {
	attributes := map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
		"big": {BoolValue: ptr.To(s.chance(40))},
	}
	if !s.chance(10) {
		attributes["example.com/side"] = resourceapi.DeviceAttribute{StringValue: ptr.To([]string{"left", "right", "middle"}[s.random.Intn(3)])}
	}
	if s.chance(80) {
		attributes["slot"] = resourceapi.DeviceAttribute{IntValue: ptr.To(int64(s.random.Intn(3)))}
	}
	return attributes
}

func (s *state) capacity() map[resourceapi.QualifiedName]resourceapi.DeviceCapacity {
	memory := resourceapi.DeviceCapacity{Value: resource.MustParse([]string{"4Gi", "8Gi", "10Gi"}[s.random.Intn(3)])}
	switch s.random.Intn(4) {
	case 0:
		memory.RequestPolicy = &resourceapi.CapacityRequestPolicy{Default: ptr.To(resource.MustParse("2Gi")),
			ValidValues: []resource.Quantity{resource.MustParse("1Gi"), resource.MustParse("2Gi"), resource.MustParse("4Gi")}}
	case 1:
		memory.RequestPolicy = &resourceapi.CapacityRequestPolicy{Default: ptr.To(resource.MustParse("1Gi")),
			ValidRange: &resourceapi.CapacityRequestPolicyRange{Min: ptr.To(resource.MustParse("1Gi")), Max: ptr.To(resource.MustParse("6Gi")), Step: ptr.To(resource.MustParse("1536Mi"))}}
	}
	capacity := map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{"memory": memory}
	if s.chance(30) {
		capacity["cores"] = resourceapi.DeviceCapacity{Value: resource.MustParse("4"), RequestPolicy: &resourceapi.CapacityRequestPolicy{
			Default: ptr.To(resource.MustParse("500m")), ValidRange: &resourceapi.CapacityRequestPolicyRange{Min: ptr.To(resource.MustParse("500m")), Step: ptr.To(resource.MustParse("250m"))}}}
	}
	return capacity
}

func newSlice(name, driver, pool string, count int64) *resourceapi.ResourceSlice {
	return &resourceapi.ResourceSlice{
		TypeMeta:   metav1.TypeMeta{APIVersion: "resource.k8s.io/v1", Kind: "ResourceSlice"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       resourceapi.ResourceSliceSpec{Driver: driver, Pool: resourceapi.ResourcePool{Name: pool, Generation: 1, ResourceSliceCount: count}},
	}
}

func (s *state) devices(node, prefix string, n int, isShareable bool) []resourceapi.Device {
	var devices []resourceapi.Device
	for i := range n {
		device := resourceapi.Device{Name: fmt.Sprintf("%s-%d", prefix, i), Attributes: s.attributes(node)}
		if isShareable && s.chance(70) {
			device.AllowMultipleAllocations = ptr.To(true)
			device.Capacity = s.capacity()
		} else if s.chance(20) {
			device.Capacity = s.capacity()
		}
		devices = append(devices, device)
	}
	return devices
}

// addParts makes cards whose parts exclude each other, the counters in a slice of their own.
func (s *state) addParts(node string, cards int) {
	s.kinds["counters"] = true
	counters := newSlice(node+"-counters", cardDriver, node, 2)
	devices := newSlice(node+"-devices", cardDriver, node, 2)
	counters.Spec.NodeName, devices.Spec.NodeName = &node, &node
	draw := func(card string, memory int) []resourceapi.DeviceCounterConsumption {
		return []resourceapi.DeviceCounterConsumption{{CounterSet: card, Counters: map[string]resourceapi.Counter{
			"memory": {Value: *resource.NewQuantity(int64(memory), resource.DecimalSI)}}}}
	}
	for c := range cards {
		card := fmt.Sprintf("card-%d", c)
		counters.Spec.SharedCounters = append(counters.Spec.SharedCounters, resourceapi.CounterSet{Name: card,
			Counters: map[string]resourceapi.Counter{"memory": {Value: resource.MustParse("4")}}})
		whole := resourceapi.Device{Name: card, Attributes: s.attributes(node), ConsumesCounters: draw(card, 4)}
		whole.Attributes["big"] = resourceapi.DeviceAttribute{BoolValue: ptr.To(true)}
		devices.Spec.Devices = append(devices.Spec.Devices, whole)
		for p := range 1 + s.random.Intn(4) {
			part := resourceapi.Device{Name: fmt.Sprintf("%s-part-%d", card, p), Attributes: s.attributes(node), ConsumesCounters: draw(card, 1+s.random.Intn(2))}
			part.Attributes["big"] = resourceapi.DeviceAttribute{BoolValue: ptr.To(false)}
			devices.Spec.Devices = append(devices.Spec.Devices, part)
		}
	}
	if s.chance(50) {
		s.random.Shuffle(len(devices.Spec.Devices), func(i, j int) {
			devices.Spec.Devices[i], devices.Spec.Devices[j] = devices.Spec.Devices[j], devices.Spec.Devices[i]
		})
	}
	s.slices = append(s.slices, counters, devices)
}

func (s *state) addDevices(node string) {
	isShareable := s.kinds["shared"]
	if s.chance(15) {
		s.addParts(node, 1+s.random.Intn(2))
	} else {
		count := int64(1)
		if s.chance(15) {
			count = 2
			s.kinds["slices"] = true
		}
		for i := range count {
			slice := newSlice(fmt.Sprintf("%s-%d", node, i), cardDriver, node, count)
			slice.Spec.NodeName = &node
			slice.Spec.Devices = s.devices(node, fmt.Sprintf("card-%d", i), 1+s.random.Intn(6), isShareable)
			s.slices = append(s.slices, slice)
		}
	}
	if s.chance(50) {
		slice := newSlice(node+"-nics", nicDriver, node+"-nics", 1)
		slice.Spec.NodeName = &node
		slice.Spec.Devices = s.devices(node, "nic", 1+s.random.Intn(4), false)
		s.slices = append(s.slices, slice)
	}
}

// addOthers makes devices that no node owns, and a slice whose devices choose their nodes.
func (s *state) addOthers() {
	if s.chance(8) {
		s.kinds["roaming"] = true
		slice := newSlice("roaming", cardDriver, "roaming", 1)
		if s.chance(50) {
			slice.Spec.AllNodes = ptr.To(true)
		} else {
			slice.Spec.NodeSelector = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
				{Key: "hall", Operator: corev1.NodeSelectorOpIn, Values: []string{"north"}}}}}}
		}
		slice.Spec.Devices = s.devices("", "roaming", 1+s.random.Intn(3), s.kinds["shared"])
		s.slices = append(s.slices, slice)
	}
	if s.chance(8) {
		s.kinds["perdevice"] = true
		slice := newSlice("hall", nicDriver, "hall", 1)
		slice.Spec.PerDeviceNodeSelection = ptr.To(true)
		slice.Spec.Devices = s.devices("", "hall", 2+s.random.Intn(4), false)
		for i := range slice.Spec.Devices {
			slice.Spec.Devices[i].NodeName = &s.nodes[s.random.Intn(len(s.nodes))].Name
		}
		s.slices = append(s.slices, slice)
	}
}

// useSome allocates some devices to claims that are there already.
func (s *state) useSome() {
	for _, slice := range s.slices {
		for _, device := range slice.Spec.Devices {
			if !s.chance(12) || len(device.ConsumesCounters) > 0 && s.chance(60) {
				continue
			}
			result := resourceapi.DeviceRequestAllocationResult{Request: "r", Driver: slice.Spec.Driver, Pool: slice.Spec.Pool.Name, Device: device.Name}
			if device.AllowMultipleAllocations != nil {
				result.ShareID = ptr.To(types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", len(s.claims))))
				result.ConsumedCapacity = map[resourceapi.QualifiedName]resource.Quantity{"memory": resource.MustParse("1536Mi")}
			} else if s.chance(10) {
				result.AdminAccess = ptr.To(true)
			}
			claim := s.newClaim(fmt.Sprintf("used-%d", len(s.claims)), resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{
				Requests: []resourceapi.DeviceRequest{{Name: "r", Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: "any.example.com"}}}}})
			claim.Status.Allocation = &resourceapi.AllocationResult{Devices: resourceapi.DeviceAllocationResult{Results: []resourceapi.DeviceRequestAllocationResult{result}}}
		}
	}
}

func (s *state) newClaim(name string, spec resourceapi.ResourceClaimSpec) *resourceapi.ResourceClaim {
	claim := &resourceapi.ResourceClaim{
		TypeMeta:   metav1.TypeMeta{APIVersion: "resource.k8s.io/v1", Kind: "ResourceClaim"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "quay", UID: types.UID("claim-" + name)},
		Spec:       spec,
	}
	s.claims = append(s.claims, claim)
	return claim
}

func (s *state) class() string {
	names := []string{"card.example.com", "card.example.com", "nic.example.com", "big.example.com", "any.example.com"}
	return names[s.random.Intn(len(names))]
}

func (s *state) selectors() []resourceapi.DeviceSelector {
	if !s.chance(20) {
		return nil
	}
	expressions := []string{`device.attributes["example.com"].?side.orValue("none") != "left"`,
		`!device.attributes[device.driver].big`}
	if s.chance(10) {
		s.kinds["fails"] = true
		expressions = []string{`device.attributes["example.com"].side == "left"`}
	}
	return []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{Expression: expressions[s.random.Intn(len(expressions))]}}}
}

func (s *state) capacityRequest() *resourceapi.CapacityRequirements {
	if !s.kinds["shared"] || !s.chance(60) {
		return nil
	}
	s.kinds["capacity"] = true
	amounts := map[resourceapi.QualifiedName]resource.Quantity{"memory": resource.MustParse([]string{"1Gi", "1500Mi", "2Gi", "3Gi", "5Gi"}[s.random.Intn(5)])}
	if s.chance(10) {
		amounts["cores"] = resource.MustParse([]string{"1", "600m", "2"}[s.random.Intn(3)])
	}
	return &resourceapi.CapacityRequirements{Requests: amounts}
}

func (s *state) exactly() *resourceapi.ExactDeviceRequest {
	request := &resourceapi.ExactDeviceRequest{DeviceClassName: s.class(), Selectors: s.selectors(),
		AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: 1, Capacity: s.capacityRequest()}
	if s.chance(35) {
		request.Count = int64(1 + s.random.Intn(3))
	}
	if s.chance(10) {
		s.kinds["all"] = true
		request.AllocationMode, request.Count = resourceapi.DeviceAllocationModeAll, 0
	}
	if s.chance(7) {
		s.kinds["admin"] = true
		request.AdminAccess = ptr.To(true)
	}
	return request
}

func (s *state) request(name string) resourceapi.DeviceRequest {
	if !s.chance(25) {
		return resourceapi.DeviceRequest{Name: name, Exactly: s.exactly()}
	}
	s.kinds["first"] = true
	request := resourceapi.DeviceRequest{Name: name}
	for i := range 2 + s.random.Intn(2) {
		e := s.exactly()
		request.FirstAvailable = append(request.FirstAvailable, resourceapi.DeviceSubRequest{Name: fmt.Sprintf("sub-%d", i), DeviceClassName: e.DeviceClassName,
			Selectors: e.Selectors, AllocationMode: e.AllocationMode, Count: e.Count, Capacity: e.Capacity})
	}
	return request
}

func (s *state) constraint(requests []resourceapi.DeviceRequest) resourceapi.DeviceConstraint {
	constraint := resourceapi.DeviceConstraint{}
	name := resourceapi.FullyQualifiedName([]string{"example.com/side", cardDriver + "/slot", cardDriver + "/big"}[s.random.Intn(3)])
	if s.chance(60) {
		s.kinds["match"] = true
		constraint.MatchAttribute = &name
	} else {
		s.kinds["distinct"] = true
		constraint.DistinctAttribute = &name
	}
	if s.chance(40) {
		request := requests[s.random.Intn(len(requests))]
		constraint.Requests = []string{request.Name}
		if len(request.FirstAvailable) > 0 && s.chance(50) {
			constraint.Requests[0] += "/" + request.FirstAvailable[0].Name
		}
	}
	return constraint
}

func (s *state) claimSpec() resourceapi.ResourceClaimSpec {
	spec := resourceapi.ResourceClaimSpec{}
	count := 1
	if s.chance(35) {
		count += 1 + s.random.Intn(2)
		s.kinds["several"] = true
	}
	for i := range count {
		spec.Devices.Requests = append(spec.Devices.Requests, s.request(fmt.Sprintf("r%d", i)))
	}
	for s.chance(25) {
		spec.Devices.Constraints = append(spec.Devices.Constraints, s.constraint(spec.Devices.Requests))
	}
	return spec
}

func newState(seed int64) *state {
	s := &state{seed: seed, random: rand.New(rand.NewSource(seed)), kinds: map[string]bool{}, gang: gang{name: "gang"}}
	s.addClass("card.example.com", `device.driver == "`+cardDriver+`"`)
	s.addClass("nic.example.com", `device.driver == "`+nicDriver+`"`)
	s.addClass("big.example.com", `device.attributes[device.driver].big`)
	s.addClass("any.example.com", "")
	if s.chance(25) {
		s.makePools()
		return s
	}
	if s.chance(30) {
		s.kinds["shared"] = true
	}
	for i := range 1 + s.random.Intn(3) {
		s.addNode(fmt.Sprintf("n%d", i))
	}
	for _, node := range s.nodes {
		s.addDevices(node.Name)
	}
	s.addOthers()
	s.useSome()
	s.pods = 1 + s.random.Intn(5)
	for range 1 + s.random.Intn(4)/3 {
		s.entries = append(s.entries, entry{spec: s.claimSpec()})
	}
	if len(s.entries) > 1 {
		s.kinds["claims"] = true
	}
	if len(s.nodes) == 1 && s.chance(15) {
		s.kinds["named"] = true
		s.entries[0].named = "shared"
		s.newClaim("shared", s.entries[0].spec)
	}
	return s
}

func (g *gang) template(i int) string { return fmt.Sprintf("t%s-c%d", g.name, i) }

func (g *gang) job(uid int) map[string]any {
	var entries, uses []any
	for i, e := range g.entries {
		name := fmt.Sprintf("c%d", i)
		if e.named != "" {
			entries = append(entries, map[string]any{"name": name, "resourceClaimName": e.named})
		} else {
			entries = append(entries, map[string]any{"name": name, "resourceClaimTemplateName": g.template(i)})
		}
		uses = append(uses, map[string]any{"name": name})
	}
	return map[string]any{"apiVersion": "batch/v1", "kind": "Job",
		"metadata": map[string]any{"name": g.name, "namespace": "quay", "uid": fmt.Sprintf("7a11d0a0-0000-4000-8000-%012d", uid),
			"creationTimestamp": fmt.Sprintf("2026-11-29T11:%02d:00Z", uid), "labels": map[string]any{"tallyman.dev/queue": "crane"}},
		"spec": map[string]any{"suspend": true, "parallelism": g.pods, "completions": g.pods, "template": map[string]any{"spec": map[string]any{
			"restartPolicy": "Never", "resourceClaims": entries,
			"containers": []any{map[string]any{"name": "main", "image": "none", "resources": map[string]any{"claims": uses}}}}}}}
}

// gangs are all that want to start, in the order of their queue.
func (s *state) gangs() []*gang {
	if s.other == nil {
		return []*gang{&s.gang}
	}
	return []*gang{s.other, &s.gang}
}

// manifests are the same state for `tallyman plan`.
func (s *state) manifests() []byte {
	resources := []any{}
	for _, class := range s.classes {
		resources = append(resources, map[string]any{"name": class.Name, "nominalQuota": "1000"})
	}
	all := []any{
		map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "quay"}},
		map[string]any{"apiVersion": "tallyman.dev/v1beta1", "kind": "Queue", "metadata": map[string]any{"name": "crane"},
			"spec": map[string]any{"namespaceSelector": map[string]any{}, "resourceGroups": []any{map[string]any{
				"flavors": []any{map[string]any{"name": "default", "resources": resources}}}}}},
	}
	for _, o := range s.nodes {
		all = append(all, o)
	}
	for _, o := range s.classes {
		all = append(all, o)
	}
	for _, o := range s.slices {
		all = append(all, o)
	}
	for _, o := range s.claims {
		all = append(all, o)
	}
	for n, g := range s.gangs() {
		for i, e := range g.entries {
			if e.named == "" {
				all = append(all, &resourceapi.ResourceClaimTemplate{
					TypeMeta:   metav1.TypeMeta{APIVersion: "resource.k8s.io/v1", Kind: "ResourceClaimTemplate"},
					ObjectMeta: metav1.ObjectMeta{Name: g.template(i), Namespace: "quay"},
					Spec:       resourceapi.ResourceClaimTemplateSpec{Spec: e.spec}})
			}
		}
		all = append(all, g.job(n+1))
	}
	var text strings.Builder
	for _, o := range all {
		data, err := json.Marshal(o)
		if err != nil {
			panic(err)
		}
		fmt.Fprintf(&text, "---\n%s\n", data)
	}
	return []byte(text.String())
}
