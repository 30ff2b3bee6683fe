package main

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"
)

func hallSelector(halls ...string) *corev1.NodeSelector {
	return &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
		{Key: "hall", Operator: corev1.NodeSelectorOpIn, Values: halls}}}}}
}

func hostSelector(names ...string) *corev1.NodeSelector {
	return &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
		{Key: "kubernetes.io/hostname", Operator: corev1.NodeSelectorOpIn, Values: names}}}}}
}

// someNodes selects one to all of them.
func (s *state) someNodes() *corev1.NodeSelector {
	if s.chance(30) {
		return hallSelector([]string{"north", "south"}[s.random.Intn(2)])
	}
	var names []string
	for _, node := range s.nodes {
		if s.chance(50) {
			names = append(names, node.Name)
		}
	}
	if len(names) == 0 {
		names = append(names, s.nodes[0].Name)
	}
	return hostSelector(names...)
}

// addPool makes devices that several nodes see: all of them, some, or each device others.
func (s *state) addPool(name string) {
	slice := newSlice(name, cardDriver, name, 1)
	slice.Spec.Devices = s.devices("", name, 1+s.random.Intn(4), false)
	switch s.random.Intn(6) {
	case 0:
		slice.Spec.AllNodes = ptr.To(true)
	case 1:
		slice.Spec.PerDeviceNodeSelection = ptr.To(true)
		for i := range slice.Spec.Devices {
			device := &slice.Spec.Devices[i]
			switch s.random.Intn(3) {
			case 0:
				device.AllNodes = ptr.To(true)
			case 1:
				device.NodeName = &s.nodes[s.random.Intn(len(s.nodes))].Name
			default:
				device.NodeSelector = s.someNodes()
			}
		}
	default:
		slice.Spec.NodeSelector = s.someNodes()
	}
	s.slices = append(s.slices, slice)
}

// makePools is a cluster in which it matters who sees which devices, and a gang that is simple otherwise.
func (s *state) makePools() {
	s.kinds["pools"] = true
	for i := range 2 + s.random.Intn(4) {
		s.addNodeWithRoom(fmt.Sprintf("n%d", i), 60)
	}
	for i := range 1 + s.random.Intn(3) {
		s.addPool(fmt.Sprintf("pool-%d", i))
	}
	for _, node := range s.nodes {
		if s.chance(40) {
			slice := newSlice(node.Name, cardDriver, node.Name, 1)
			slice.Spec.NodeName = &node.Name
			slice.Spec.Devices = s.devices(node.Name, "card", 1+s.random.Intn(4), false)
			s.slices = append(s.slices, slice)
		}
	}
	s.useSome()
	s.entries, s.pods = s.poolGang()
	if s.chance(40) {
		s.kinds["two"] = true
		s.other = &gang{name: "other"}
		s.other.entries, s.other.pods = s.poolGang()
		if s.chance(75) {
			s.other.entries = s.entries
		}
		s.pods, s.other.pods = 1+s.pods/4, 1+s.other.pods/4
	}
}

func (s *state) poolGang() (entries []entry, pods int) {
	pods = 1 + s.random.Intn(8)
	if s.chance(20) {
		s.kinds["several"] = true
		return []entry{{spec: s.claimSpec()}}, pods
	}
	request := &resourceapi.ExactDeviceRequest{DeviceClassName: "card.example.com", AllocationMode: resourceapi.DeviceAllocationModeExactCount,
		Count: int64(1 + s.random.Intn(6)/3)}
	return []entry{{spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{
		Requests: []resourceapi.DeviceRequest{{Name: "r", Exactly: request}}}}}}, pods
}
