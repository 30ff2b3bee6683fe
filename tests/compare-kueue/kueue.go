package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"

	config "sigs.k8s.io/kueue/apis/config/v1beta2"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	schdcache "sigs.k8s.io/kueue/pkg/cache/scheduler"
	"sigs.k8s.io/kueue/pkg/resources"
	"sigs.k8s.io/kueue/pkg/workload"
)

var errPanic = errors.New("kueue panicked")

var fairStrategies = []config.PreemptionStrategy{config.LessThanOrEqualToFinalShare, config.LessThanInitialShare}

// What one of the two says of the waiting gang.
type answer struct {
	decision string   // Admit, Preempt, Wait
	flavors  []string // resource=flavor, sorted; of Admit and Preempt
	victims  []string // sorted
	why      string   // for people
}

func (a answer) String() string {
	return fmt.Sprintf("%s flavors=%v victims=%v (%s)", a.decision, a.flavors, a.victims, a.why)
}

func kueueGroups(s *state, quotas []quota) []kueue.ResourceGroup {
	if len(quotas) == 0 {
		return nil
	}
	group := kueue.ResourceGroup{}
	for i, flavor := range s.flavors {
		f := kueue.FlavorQuotas{Name: kueue.ResourceFlavorReference(flavor)}
		for _, q := range quotas {
			if q.flavor != flavor {
				continue
			}
			r := kueue.ResourceQuota{Name: corev1.ResourceName(q.resource), NominalQuota: *resource.NewQuantity(int64(q.nominal), resource.DecimalSI)}
			if q.borrowing >= 0 {
				r.BorrowingLimit = resource.NewQuantity(int64(q.borrowing), resource.DecimalSI)
			}
			if q.lending >= 0 {
				r.LendingLimit = resource.NewQuantity(int64(q.lending), resource.DecimalSI)
			}
			f.Resources = append(f.Resources, r)
			if i == 0 {
				group.CoveredResources = append(group.CoveredResources, r.Name)
			}
		}
		group.Flavors = append(group.Flavors, f)
	}
	return []kueue.ResourceGroup{group}
}

func fairSharing(weight int) *kueue.FairSharing {
	return &kueue.FairSharing{Weight: resource.NewQuantity(int64(weight), resource.DecimalSI)}
}

func kueueQueue(s *state, q queue) *kueue.ClusterQueue {
	cq := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: q.name}, Spec: kueue.ClusterQueueSpec{
		ResourceGroups: kueueGroups(s, q.quotas), CohortName: kueue.CohortReference(q.cohort),
		NamespaceSelector: &metav1.LabelSelector{}, QueueingStrategy: kueue.BestEffortFIFO,
		FlavorFungibility: &kueue.FlavorFungibility{WhenCanBorrow: kueue.FlavorFungibilityPolicy(q.whenCanBorrow),
			WhenCanPreempt: kueue.FlavorFungibilityPolicy(q.whenCanPreempt)},
		Preemption: &kueue.ClusterQueuePreemption{WithinClusterQueue: kueue.PreemptionPolicy(q.withinQueue),
			ReclaimWithinCohort: kueue.PreemptionPolicy(q.reclaim),
			BorrowWithinCohort: &kueue.BorrowWithinCohort{Policy: kueue.BorrowWithinCohortPolicy(q.borrowWithin),
				MaxPriorityThreshold: q.threshold}},
		StopPolicy: ptr.To(kueue.None), FairSharing: fairSharing(q.weight)}}
	if q.strict {
		cq.Spec.QueueingStrategy = kueue.StrictFIFO
	}
	if q.preference != "" {
		cq.Spec.FlavorFungibility.Preference = ptr.To(kueue.FlavorFungibilityPreference(q.preference))
	}
	return cq
}

func kueueWorkload(s *state, g gang, n int) *kueue.Workload {
	requests := corev1.ResourceList{}
	usage := corev1.ResourceList{}
	flavors := map[corev1.ResourceName]kueue.ResourceFlavorReference{}
	for name, amount := range g.requests {
		requests[corev1.ResourceName(name)] = *resource.NewQuantity(int64(amount), resource.DecimalSI)
		usage[corev1.ResourceName(name)] = *resource.NewQuantity(int64(amount*g.pods), resource.DecimalSI)
		flavors[corev1.ResourceName(name)] = kueue.ResourceFlavorReference(g.flavors[name])
	}
	podSet := kueue.PodSet{Name: "main", Count: int32(g.pods), Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Requests: requests}}}}}}
	if g.minPods > 0 {
		podSet.MinCount = ptr.To(int32(g.minPods))
	}
	wl := &kueue.Workload{
		ObjectMeta: metav1.ObjectMeta{Name: g.name, Namespace: "quay", UID: types.UID(uid(s.seed, n)),
			CreationTimestamp: metav1.NewTime(g.created)},
		Spec: kueue.WorkloadSpec{QueueName: kueue.LocalQueueName(g.queue), Priority: ptr.To(g.priority), Active: ptr.To(true),
			PodSets: []kueue.PodSet{podSet}}}
	if !g.admitted.IsZero() {
		wl.Status.Admission = &kueue.Admission{ClusterQueue: kueue.ClusterQueueReference(g.queue),
			PodSetAssignments: []kueue.PodSetAssignment{{Name: "main", Flavors: flavors, ResourceUsage: usage, Count: ptr.To(int32(g.pods))}}}
		for _, condition := range []string{kueue.WorkloadQuotaReserved, kueue.WorkloadAdmitted} {
			wl.Status.Conditions = append(wl.Status.Conditions, metav1.Condition{Type: condition, Status: metav1.ConditionTrue,
				Reason: "Admitted", LastTransitionTime: metav1.NewTime(g.admitted)})
		}
	}
	return wl
}

// Fills the cache; unless the state may be overfull, what has no quota any more isn't in it.
func fillCache(ctx context.Context, s *state, cache *schdcache.Cache) error {
	log := logr.Discard()
	for _, flavor := range s.flavors {
		cache.AddOrUpdateResourceFlavor(log, &kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: flavor}})
	}
	for _, c := range s.cohorts {
		object := &kueue.Cohort{ObjectMeta: metav1.ObjectMeta{Name: c.name}, Spec: kueue.CohortSpec{
			ParentName: kueue.CohortReference(c.parent), ResourceGroups: kueueGroups(s, c.quotas), FairSharing: fairSharing(c.weight)}}
		if err := cache.AddOrUpdateCohort(object); err != nil {
			return err
		}
	}
	for _, q := range s.queues {
		if err := cache.AddClusterQueue(ctx, kueueQueue(s, q)); err != nil {
			return err
		}
	}
	running := []gang{}
	for _, g := range s.running {
		if !s.isOverfull {
			hasRoom, err := hasQuota(ctx, cache, g)
			if err != nil {
				return err
			}
			if !hasRoom {
				continue
			}
		}
		running = append(running, g)
		if !cache.AddOrUpdateWorkload(log, kueueWorkload(s, g, len(running))) {
			return fmt.Errorf("workload %s was not taken", g.name)
		}
	}
	s.running = running
	return nil
}

func hasQuota(ctx context.Context, cache *schdcache.Cache, g gang) (bool, error) {
	snapshot, err := cache.Snapshot(ctx)
	if err != nil {
		return false, err
	}
	queue := snapshot.ClusterQueue(kueue.ClusterQueueReference(g.queue))
	for resource, amount := range g.requests {
		place := resources.FlavorResource{Flavor: kueue.ResourceFlavorReference(g.flavors[resource]), Resource: corev1.ResourceName(resource)}
		if int64(amount*g.pods)*unit(resource) > queue.Available(place) {
			return false, nil
		}
	}
	return true, nil
}

// Kueue counts cpu in thousandths.
func unit(resource string) int64 {
	if resource == "cpu" {
		return 1000
	}
	return 1
}

// What Kueue would do with the waiting gang alone: its own cache, flavor assigner and preemption.
// The question is the same, should the answer be another one than Tallyman's.
func askKueue(s *state) (result map[string]answer, asked *question, err error) {
	defer func() {
		// Release 0.17.0 dereferences the cohort of a queue that has none, with fair sharing.
		if trouble := recover(); trouble != nil {
			err = fmt.Errorf("%w: %v", errPanic, trouble)
		}
	}()
	ctx := ctrl.LoggerInto(context.Background(), logr.Discard())
	d, err := newDriver(ctx, s, rules{})
	if err != nil {
		return nil, nil, err
	}
	snapshot, err := d.cache.Snapshot(ctx)
	if err != nil {
		return nil, nil, err
	}
	info := workload.NewInfo(kueueWorkload(s, s.waiting[0], firstWaiting))
	info.ClusterQueue = kueue.ClusterQueueReference(s.waiting[0].queue)
	queue := snapshot.ClusterQueue(info.ClusterQueue)
	if queue == nil {
		return nil, nil, fmt.Errorf("queue %s is not active", s.waiting[0].queue)
	}
	e := d.judge(snapshot, info)
	asked = &question{driver: d, snapshot: snapshot, queue: queue, info: info, kueue: e}
	return map[string]answer{s.waiting[0].name: e.answer()}, asked, nil
}
