package main

import (
	"fmt"
	"math/rand"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
)

var labelKeys = []string{"zone", "gpu", "example.com/rack", "kubernetes.io/hostname", "n"}

// Now and then one that no label can have.
func randomKey(r *rand.Rand) string {
	if oneIn(r, 25) {
		return pick(r, "", "-zone", "zone-", "UPPER.example/x", "a/b/c", "/x", "x/", "a..b/x", "a.-b/x",
			"example.com/", "z_o.n-e", "0", "zo ne")
	}
	return pick(r, labelKeys...)
}

func randomValue(r *rand.Rand) string {
	if oneIn(r, 25) {
		return pick(r, "-a", "a-", "a b", "é", "a/b", ".",
			"a123456789012345678901234567890123456789012345678901234567890123")
	}
	return pick(r, "a", "b", "", "r7", "1", "2", "10", "-5", "007", "+3", "9223372036854775807",
		"9223372036854775808", "1.5", "node-1", "node-2")
}

func randomLabels(r *rand.Rand) map[string]string {
	set := map[string]string{}
	for range r.Intn(5) {
		set[pick(r, labelKeys...)] = pick(r, "a", "b", "", "r7", "1", "2", "10", "007", "1.5", "node-1",
			"9223372036854775807", "9223372036854775808")
	}
	return set
}

func randomValues(r *rand.Rand, op string) []string {
	count := r.Intn(3)
	if !oneIn(r, 6) {
		switch op {
		case "Exists", "DoesNotExist":
			count = 0
		case "Gt", "Lt":
			count = 1
		default:
			count = 1 + r.Intn(3)
		}
	}
	var values []string
	for range count {
		values = append(values, randomValue(r))
	}
	return values
}

func randomRequirements(r *rand.Rand, most int) []v1.NodeSelectorRequirement {
	var list []v1.NodeSelectorRequirement
	for range r.Intn(most + 1) {
		op := pick(r, "In", "In", "NotIn", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
		if oneIn(r, 30) {
			op = pick(r, "", "in", "Equals", "Near")
		}
		list = append(list, v1.NodeSelectorRequirement{
			Key: randomKey(r), Operator: v1.NodeSelectorOperator(op), Values: randomValues(r, op)})
	}
	return list
}

func randomFields(r *rand.Rand) []v1.NodeSelectorRequirement {
	if !oneIn(r, 5) {
		return nil
	}
	op := pick(r, "In", "NotIn", "In", "NotIn", "Exists", "Gt")
	field := v1.NodeSelectorRequirement{
		Key:      pick(r, "metadata.name", "metadata.name", "metadata.name", "metadata.uid"),
		Operator: v1.NodeSelectorOperator(op)}
	for range pick(r, 1, 1, 1, 0, 2) {
		field.Values = append(field.Values, pick(r, "node-1", "node-2", ""))
	}
	return []v1.NodeSelectorRequirement{field}
}

type nodeCase struct {
	Name     string            `json:"name"`
	Labels   map[string]string `json:"labels"`
	Wanted   map[string]string `json:"wanted"`
	Selector *v1.NodeSelector  `json:"selector,omitempty"`
}

func writeNodeSelectors(w *writer) {
	r := w.random
	for range nodeCases {
		c := nodeCase{Name: pick(r, "node-1", "node-1", "node-1", "node-2", ""), Labels: randomLabels(r)}
		if oneIn(r, 4) {
			c.Wanted = map[string]string{pick(r, labelKeys...): pick(r, "a", "b", "")}
		}
		if !oneIn(r, 15) {
			c.Selector = &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{}}
			for range r.Intn(4) {
				c.Selector.NodeSelectorTerms = append(c.Selector.NodeSelectorTerms, v1.NodeSelectorTerm{
					MatchExpressions: randomRequirements(r, 3), MatchFields: randomFields(r)})
			}
		}
		affinity := &v1.Affinity{NodeAffinity: &v1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: c.Selector}}
		node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: c.Name, Labels: c.Labels}}
		matches, _ := nodeaffinity.NewRequiredNodeAffinity(c.Wanted, affinity).Match(node)
		w.add("node", c, fmt.Sprint(matches))
	}
}

type labelCase struct {
	Labels   map[string]string     `json:"labels"`
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
}

func writeLabelSelectors(w *writer) {
	r := w.random
	for range labelCases {
		c := labelCase{Labels: randomLabels(r)}
		if !oneIn(r, 20) {
			c.Selector = &metav1.LabelSelector{}
			if oneIn(r, 3) {
				c.Selector.MatchLabels = randomLabels(r)
			}
			for _, requirement := range randomRequirements(r, 3) {
				c.Selector.MatchExpressions = append(c.Selector.MatchExpressions,
					metav1.LabelSelectorRequirement{Key: requirement.Key,
						Operator: metav1.LabelSelectorOperator(requirement.Operator),
						Values:   requirement.Values})
			}
		}
		selector, err := metav1.LabelSelectorAsSelector(c.Selector)
		matches := err == nil && selector.Matches(labels.Set(c.Labels))
		w.add("label", c, fmt.Sprint(matches))
	}
}

type tolerationCase struct {
	Taints      []v1.Taint      `json:"taints"`
	Tolerations []v1.Toleration `json:"tolerations"`
}

func isStrict(taint *v1.Taint) bool {
	return taint.Effect == v1.TaintEffectNoSchedule || taint.Effect == v1.TaintEffectNoExecute
}

func writeTolerations(w *writer) {
	r := w.random
	for range tolerationCases {
		var c tolerationCase
		for i := range 1 + r.Intn(3) {
			// timeAdded tells the taints apart in the answer, and matters to nothing else.
			added := metav1.Unix(int64(1000+i), 0)
			c.Taints = append(c.Taints, v1.Taint{Key: pick(r, "gpu", "spot", "n"),
				Value: pick(r, "", "a", "b", "5", "10"),
				Effect: pick(r, v1.TaintEffectNoSchedule, v1.TaintEffectNoExecute,
					v1.TaintEffectPreferNoSchedule), TimeAdded: &added})
		}
		for range r.Intn(4) {
			c.Tolerations = append(c.Tolerations, v1.Toleration{
				Key:      pick(r, "gpu", "spot", "n", ""),
				Operator: v1.TolerationOperator(pick(r, "", "Equal", "Exists", "Exists", "Lt", "Gt", "exists")),
				Value:    pick(r, "", "a", "b", "5", "10"),
				Effect:   v1.TaintEffect(pick(r, "", "NoSchedule", "NoExecute", "PreferNoSchedule"))})
		}
		taint, found := corev1helpers.FindMatchingUntoleratedTaint(klog.Background(), c.Taints, c.Tolerations,
			isStrict, false)
		answer := "none"
		if found {
			answer = fmt.Sprint(taint.TimeAdded.Unix() - 1000)
		}
		w.add("taint", c, answer)
	}
}
