package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
)

// What 1.37 has on by default.
var features = structured.Features{
	AdminAccess:             true,
	ConsumableCapacity:      true,
	DeviceBindingAndStatus:  true,
	DeviceTaints:            true,
	FractionalCapacityRange: true,
	PartitionableDevices:    true,
	PrioritizedList:         true,
}

var celCache = cel.NewCache(1000, cel.Features{EnableConsumableCapacity: true})

type classes []*resourceapi.DeviceClass

func (c classes) List() ([]*resourceapi.DeviceClass, error) { return c, nil }

func (c classes) Get(name string) (*resourceapi.DeviceClass, error) {
	for _, class := range c {
		if class.Name == name {
			return class, nil
		}
	}
	return nil, fmt.Errorf("class %s not found", name)
}

// allocatedState is what the scheduler remembers of claims, as its plugin reads them.
func allocatedState(claims []*resourceapi.ResourceClaim) structured.AllocatedState {
	state := structured.AllocatedState{
		AllocatedDevices:         sets.New[structured.DeviceID](),
		AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity:       structured.NewConsumedCapacityCollection(),
	}
	for _, claim := range claims {
		if claim.Status.Allocation == nil {
			continue
		}
		for _, result := range claim.Status.Allocation.Devices.Results {
			if result.AdminAccess != nil && *result.AdminAccess {
				continue
			}
			id := structured.MakeDeviceID(result.Driver, result.Pool, result.Device)
			if result.ShareID == nil {
				state.AllocatedDevices.Insert(id)
				continue
			}
			state.AllocatedSharedDeviceIDs.Insert(structured.MakeSharedDeviceID(id, result.ShareID))
			if result.ConsumedCapacity != nil {
				state.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(id, result.ConsumedCapacity))
			}
		}
	}
	return state
}

// claimsOfPod are the claims that the controller makes for one pod, and the named ones.
func (g *gang) claimsOfPod(pod int, claims []*resourceapi.ResourceClaim) (all, own []*resourceapi.ResourceClaim) {
	for i, entry := range g.entries {
		if entry.named != "" {
			for _, claim := range claims {
				if claim.Name == entry.named {
					all = append(all, claim)
				}
			}
			continue
		}
		claim := &resourceapi.ResourceClaim{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d-%d", g.name, pod, i), Namespace: "quay"},
			Spec:       *entry.spec.DeepCopy(),
		}
		all = append(all, claim)
		own = append(own, claim)
	}
	return all, own
}

func reaches(node *corev1.Node, claims []*resourceapi.ResourceClaim) bool {
	for _, claim := range claims {
		if claim.Status.Allocation == nil || claim.Status.Allocation.NodeSelector == nil {
			continue
		}
		selector, err := nodeaffinity.NewNodeSelector(claim.Status.Allocation.NodeSelector)
		if err != nil || !selector.Match(node) {
			return false
		}
	}
	return true
}

// place schedules one pod: every node that has room for it is asked, and one of those that can take
// it is chosen. An error anywhere ends the pod's turn, as in the scheduler.
func (s *state) place(g *gang, pod int, claims *[]*resourceapi.ResourceClaim, room map[string]int, choose func(n int) int) error {
	all, own := g.claimsOfPod(pod, *claims)
	var open []*resourceapi.ResourceClaim
	for _, claim := range all {
		if claim.Status.Allocation == nil {
			open = append(open, claim)
		}
	}
	allocator, err := structured.NewAllocator(context.Background(), features, allocatedState(*claims), classes(s.classes),
		s.slices, celCache)
	if err != nil {
		return err
	}
	type way struct {
		node    string
		results []resourceapi.AllocationResult
	}
	var ways []way
	for _, node := range s.nodes {
		if room[node.Name] == 0 || !g.mayUse(node) || !reaches(node, all) {
			continue
		}
		if len(open) == 0 {
			ways = append(ways, way{node: node.Name})
			continue
		}
		results, err := allocator.Allocate(context.Background(), node, open)
		if err != nil && !errors.Is(err, structured.ErrFailedAllocationOnNode) {
			return fmt.Errorf("node %s: %w", node.Name, err)
		}
		if err == nil && len(results) == len(open) {
			ways = append(ways, way{node.Name, results})
		}
	}
	if len(ways) == 0 {
		return fmt.Errorf("pod %d: no node can allocate its claims", pod)
	}
	chosen := ways[choose(len(ways))]
	for i := range chosen.results {
		open[i].Status.Allocation = &chosen.results[i]
	}
	*claims = append(*claims, own...)
	room[chosen.node]--
	return nil
}

// placeAll schedules the gangs, pod after pod; of several the next is chosen, too.
func (s *state) placeAll(gangs []*gang, choose func(n int) int) error {
	var claims []*resourceapi.ResourceClaim
	for _, claim := range s.claims {
		claims = append(claims, claim.DeepCopy())
	}
	room := map[string]int{}
	for _, node := range s.nodes {
		room[node.Name] = int(node.Status.Allocatable.Pods().Value())
	}
	var left []*gang
	for _, g := range gangs {
		for range g.pods {
			left = append(left, g)
		}
	}
	total := len(left)
	for pod := range total {
		next := 0
		if len(gangs) > 1 {
			next = choose(len(left))
		}
		if err := s.place(left[next], pod, &claims, room, choose); err != nil {
			return fmt.Errorf("%d of %d pods: %w", pod, total, err)
		}
		left = append(left[:next], left[next+1:]...)
	}
	return nil
}

// mayUse says whether the nodeSelector that the plan adds allows the node.
func (g *gang) mayUse(node *corev1.Node) bool {
	for key, value := range g.pin {
		if node.Labels[key] != value {
			return false
		}
	}
	return true
}

const randomOrders = 6

// judge asks the real allocator with the nodes chosen in several ways: how often all pods found a
// place, and why not.
func (s *state) judge(gangs []*gang) (placed, tries int, why error) {
	random := rand.New(rand.NewSource(s.seed))
	choices := []func(n int) int{
		func(n int) int { return 0 },
		func(n int) int { return n - 1 },
	}
	orders := randomOrders
	if s.kinds["pools"] {
		orders = 5 * randomOrders
	}
	for range orders {
		choices = append(choices, func(n int) int { return random.Intn(n) })
	}
	for _, choose := range choices {
		tries++
		if err := s.placeAll(gangs, choose); err != nil {
			why = err
			continue
		}
		placed++
	}
	return placed, tries, why
}
