package main

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"slices"
	"sort"
	"strings"

	inf "gopkg.in/inf.v0"
	v1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	resourcehelper "k8s.io/component-helpers/resource"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	podutil "k8s.io/kubernetes/pkg/api/pod"
	"k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	_ "k8s.io/kubernetes/pkg/apis/node/install"
	"k8s.io/kubernetes/plugin/pkg/admission/limitranger"
)

var resourceNames = []v1.ResourceName{"cpu", "cpu", "memory", "memory", "ephemeral-storage",
	"hugepages-2Mi", "hugepages-1Gi", "example.com/gpu", "example.com/nic"}

func randomAmount(r *rand.Rand, name v1.ResourceName) resource.Quantity {
	text := pick(r, "0", "1", "2", "3", "4", "7")
	switch name {
	case "cpu":
		text = pick(r, "0", "1", "2", "100m", "250m", "1500m", "0.5", "1u", "1001u", "3n", "1e3", "2.0001")
	case "memory", "ephemeral-storage":
		text = pick(r, "0", "1", "64Mi", "1Gi", "1.5Gi", "1G", "100m", "1n", "1e9", "8Ei", "5e18", "1e30")
	case "hugepages-2Mi", "hugepages-1Gi":
		text = pick(r, "0", "2Mi", "64Mi", "1Gi", "2Gi")
	}
	return resource.MustParse(text)
}

func randomList(r *rand.Rand, most int) v1.ResourceList {
	if oneIn(r, 4) {
		return nil
	}
	list := v1.ResourceList{}
	for range r.Intn(most + 1) {
		name := pick(r, resourceNames...)
		list[name] = randomAmount(r, name)
	}
	return list
}

func randomContainer(r *rand.Rand, name string) v1.Container {
	return v1.Container{Name: name, Image: "i", Resources: v1.ResourceRequirements{
		Requests: randomList(r, 3), Limits: randomList(r, 3)}}
}

func randomSpec(r *rand.Rand) v1.PodSpec {
	spec := v1.PodSpec{}
	for i := range 1 + r.Intn(3) {
		spec.Containers = append(spec.Containers, randomContainer(r, fmt.Sprintf("main-%d", i)))
	}
	for i := range r.Intn(4) {
		container := randomContainer(r, fmt.Sprintf("init-%d", i))
		if oneIn(r, 2) {
			always := v1.ContainerRestartPolicyAlways
			container.RestartPolicy = &always
		}
		spec.InitContainers = append(spec.InitContainers, container)
	}
	if oneIn(r, 3) {
		spec.Resources = &v1.ResourceRequirements{Requests: randomList(r, 2), Limits: randomList(r, 2)}
	}
	if oneIn(r, 6) {
		spec.Overhead = v1.ResourceList{"cpu": resource.MustParse("250m"),
			"memory": resource.MustParse("120Mi")}
	}
	return spec
}

// Every amount in the unit in which it is kept, by name, as far as it isn't zero. The exact rounding
// is quantity.go's, because Value() wraps.
func amountsAnswer(list v1.ResourceList) string {
	var parts []string
	for name, quantity := range list {
		unit := "units"
		if name == v1.ResourceCPU {
			unit = "milli"
		}
		number := rounded(clamp(quantity.AsDec()), unit, inf.RoundUp)
		if number != "0" && name != v1.ResourcePods {
			parts = append(parts, fmt.Sprintf("%s=%s", name, number))
		}
	}
	sort.Strings(parts)
	return strings.Join(parts, " ")
}

type templateCase struct {
	Template     v1.PodTemplateSpec   `json:"template"`
	LimitRanges  []*v1.LimitRange     `json:"limitRanges"`
	RuntimeClass *nodev1.RuntimeClass `json:"runtimeClass,omitempty"`
}

func randomRatios(r *rand.Rand) v1.ResourceList {
	if !oneIn(r, 4) {
		return nil
	}
	return v1.ResourceList{pick(r, v1.ResourceCPU, v1.ResourceMemory): resource.MustParse(pick(r, "1", "1500m", "2", "16"))}
}

func randomLimitRange(r *rand.Rand, name string) *v1.LimitRange {
	limits := &v1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for range 1 + r.Intn(2) {
		limits.Spec.Limits = append(limits.Spec.Limits, v1.LimitRangeItem{
			Type: pick(r, v1.LimitTypeContainer, v1.LimitTypeContainer, v1.LimitTypePod),
			Max:  randomList(r, 2), Min: randomList(r, 2),
			Default: randomList(r, 2), DefaultRequest: randomList(r, 2),
			MaxLimitRequestRatio: randomRatios(r)})
	}
	return limits
}

// What the API server makes of a pod of that template: decoding with defaults, LimitRanger,
// RuntimeClass, PrepareForCreate; nil: LimitRanger refuses it then.
func createdPod(c *templateCase) *v1.Pod {
	scheme := legacyscheme.Scheme
	pod := &v1.Pod{Spec: *c.Template.Spec.DeepCopy()}
	scheme.Default(pod)
	internal := &core.Pod{}
	check(scheme.Convert(pod, internal, nil))
	for _, limits := range c.LimitRanges {
		limits = limits.DeepCopy()
		scheme.Default(limits)
		check(limitranger.PodMutateLimitFunc(limits, internal))
	}
	if c.RuntimeClass != nil && c.RuntimeClass.Overhead != nil && internal.Spec.Overhead == nil {
		class := c.RuntimeClass.DeepCopy()
		scheme.Default(class)
		internal.Spec.Overhead = core.ResourceList{}
		for name, quantity := range class.Overhead.PodFixed {
			internal.Spec.Overhead[core.ResourceName(name)] = quantity
		}
	}
	podutil.DefaultPodLevelResources(internal)
	for _, limits := range c.LimitRanges {
		if limitranger.PodValidateLimitFunc(limits, internal) != nil {
			return nil
		}
	}
	created := &v1.Pod{}
	check(scheme.Convert(internal, created, nil))
	return created
}

// Amounts so large that quantities lose count of them, and LimitRanger with them.
func isHuge(lists ...v1.ResourceList) bool {
	for _, list := range lists {
		for _, quantity := range list {
			if quantity.CmpInt64(1e15) > 0 {
				return true
			}
		}
	}
	return false
}

func (c *templateCase) isHuge() bool {
	found := false
	for _, limits := range c.LimitRanges {
		for _, item := range limits.Spec.Limits {
			found = found || isHuge(item.Max, item.Min, item.Default, item.DefaultRequest)
		}
	}
	spec := &c.Template.Spec
	for _, container := range append(slices.Clone(spec.Containers), spec.InitContainers...) {
		found = found || isHuge(container.Resources.Requests, container.Resources.Limits)
	}
	return found || spec.Resources != nil && isHuge(spec.Resources.Requests, spec.Resources.Limits)
}

func (c *templateCase) dropBounds() {
	for _, limits := range c.LimitRanges {
		for i := range limits.Spec.Limits {
			item := &limits.Spec.Limits[i]
			item.Max, item.Min, item.MaxLimitRequestRatio = nil, nil, nil
		}
	}
}

func writeTemplates(w *writer) {
	r := w.random
	for range templateCases {
		c := &templateCase{Template: v1.PodTemplateSpec{Spec: randomSpec(r)}}
		for i := range pick(r, 0, 0, 1, 1, 2) {
			c.LimitRanges = append(c.LimitRanges, randomLimitRange(r, fmt.Sprintf("limits-%d", i)))
		}
		if oneIn(r, 4) {
			c.RuntimeClass = &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "sandboxed"},
				Handler: "h", Overhead: &nodev1.Overhead{PodFixed: randomList(r, 2)}}
		}
		if c.isHuge() {
			c.dropBounds()
		}
		created := createdPod(c)
		if created == nil {
			w.add("template", c, "refused")
			continue
		}
		requests := resourcehelper.PodRequests(created, resourcehelper.PodResourcesOptions{})
		w.add("template", c, amountsAnswer(requests))
	}
}

func randomStatus(r *rand.Rand, name string) v1.ContainerStatus {
	status := v1.ContainerStatus{Name: name, AllocatedResources: randomList(r, 3)}
	if oneIn(r, 2) {
		status.Resources = &v1.ResourceRequirements{Requests: randomList(r, 3)}
	}
	return status
}

func randomPodStatus(r *rand.Rand, spec *v1.PodSpec) v1.PodStatus {
	var status v1.PodStatus
	for i := range spec.Containers {
		if !oneIn(r, 3) {
			status.ContainerStatuses = append(status.ContainerStatuses, randomStatus(r, spec.Containers[i].Name))
		}
	}
	for i := range spec.InitContainers {
		if !oneIn(r, 3) {
			status.InitContainerStatuses = append(status.InitContainerStatuses,
				randomStatus(r, spec.InitContainers[i].Name))
		}
	}
	if oneIn(r, 3) {
		status.AllocatedResources = randomList(r, 3)
	}
	if oneIn(r, 3) {
		status.Resources = &v1.ResourceRequirements{Requests: randomList(r, 3)}
	}
	if oneIn(r, 3) {
		status.Conditions = append(status.Conditions, v1.PodCondition{Type: v1.PodResizePending,
			Status: v1.ConditionTrue, Reason: pick(r, v1.PodReasonInfeasible, v1.PodReasonDeferred)})
	}
	return status
}

// As the API server keeps a pod: with its defaults, every list in thousandths, what is empty left out.
func keptPod(pod *v1.Pod) *v1.Pod {
	legacyscheme.Scheme.Default(pod)
	text, err := json.Marshal(pod)
	check(err)
	kept := &v1.Pod{}
	check(json.Unmarshal(text, kept))
	return kept
}

func writePods(w *writer) {
	r := w.random
	for range podCases {
		pod := &v1.Pod{Spec: randomSpec(r)}
		if !oneIn(r, 3) {
			pod.Status = randomPodStatus(r, &pod.Spec)
		}
		kept := keptPod(pod)
		requests := resourcehelper.PodRequests(kept, resourcehelper.PodResourcesOptions{
			UseStatusResources: true, InPlacePodLevelResourcesVerticalScalingEnabled: true})
		w.add("pod", kept, amountsAnswer(requests))
	}
}
