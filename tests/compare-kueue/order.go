package main

import (
	"context"
	"fmt"
	"sort"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	config "sigs.k8s.io/kueue/apis/config/v1beta2"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	qcache "sigs.k8s.io/kueue/pkg/cache/queue"
	schdcache "sigs.k8s.io/kueue/pkg/cache/scheduler"
	"sigs.k8s.io/kueue/pkg/controller/core/indexer"
	"sigs.k8s.io/kueue/pkg/scheduler"
	"sigs.k8s.io/kueue/pkg/util/expectations"
)

// Never needed but where something is wrong; the machine may be busy with other things.
const settleLimit = 5 * time.Minute

// What Kueue's whole scheduler admits of the gangs that wait, when it has come to rest.
func runKueue(s *state) (map[string]answer, error) {
	ctx, cancel := context.WithCancel(ctrl.LoggerInto(context.Background(), logr.Discard()))
	defer cancel()
	scheme := runtime.NewScheme()
	if err := kueue.AddToScheme(scheme); err != nil {
		return nil, err
	}
	if err := corev1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	builder := fake.NewClientBuilder().WithScheme(scheme).
		WithIndex(&kueue.LocalQueue{}, indexer.QueueClusterQueueKey, indexer.IndexQueueClusterQueue).
		WithIndex(&kueue.Workload{}, indexer.WorkloadQueueKey, indexer.IndexWorkloadQueue).
		WithIndex(&kueue.Workload{}, indexer.WorkloadClusterQueueKey, indexer.IndexWorkloadClusterQueue).
		WithStatusSubresource(&kueue.Workload{}).
		WithObjects(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "quay"}})
	waiting := []*kueue.Workload{}
	for i, g := range s.waiting {
		wl := kueueWorkload(s, g, firstWaiting+i)
		waiting = append(waiting, wl)
		builder = builder.WithObjects(wl)
	}
	client := builder.Build()
	cache := schdcache.New(client, schdcache.WithFairSharing(s.isFair))
	expected := expectations.NewStore("preemption")
	queues := qcache.NewManagerForUnitTests(client, cache, qcache.WithPreemptionExpectations(expected))
	if err := fillCache(ctx, s, cache); err != nil {
		return nil, err
	}
	for _, q := range s.queues {
		if err := queues.AddClusterQueue(ctx, kueueQueue(s, q)); err != nil {
			return nil, err
		}
		local := &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Name: q.name, Namespace: "quay"},
			Spec: kueue.LocalQueueSpec{ClusterQueue: kueue.ClusterQueueReference(q.name)}}
		if err := queues.AddLocalQueue(ctx, local); err != nil {
			return nil, err
		}
	}
	for _, wl := range waiting {
		if err := queues.AddOrUpdateWorkload(logr.Discard(), wl); err != nil {
			return nil, err
		}
	}
	options := []scheduler.Option{scheduler.WithPreemptionExpectations(expected)}
	if s.isFair {
		options = append(options, scheduler.WithFairSharing(&config.FairSharing{PreemptionStrategies: fairStrategies}))
	}
	if err := scheduler.New(queues, cache, client, &record.FakeRecorder{}, options...).Start(ctx); err != nil {
		return nil, err
	}
	return settled(ctx, s, queues, cache)
}

// Waits until every gang is either admitted or set aside as inadmissible, and a cycle can't be
// under way any more.
func settled(ctx context.Context, s *state, queues *qcache.Manager, cache *schdcache.Cache) (map[string]answer, error) {
	deadline := time.Now().Add(settleLimit)
	calm := 0
	for time.Now().Before(deadline) {
		time.Sleep(2 * time.Millisecond)
		answers, isSettled, err := lookAt(ctx, s, queues, cache)
		if err != nil {
			return nil, err
		}
		if !isSettled {
			calm = 0
			continue
		}
		if calm++; calm == 3 {
			return answers, nil
		}
	}
	return nil, fmt.Errorf("kueue did not come to rest in %s", settleLimit)
}

func lookAt(ctx context.Context, s *state, queues *qcache.Manager, cache *schdcache.Cache) (map[string]answer, bool, error) {
	snapshot, err := cache.Snapshot(ctx)
	if err != nil {
		return nil, false, err
	}
	answers := map[string]answer{}
	for _, g := range s.waiting {
		answers[g.name] = answer{decision: "Wait"}
	}
	admitted := 0
	for _, q := range s.queues {
		for _, info := range snapshot.ClusterQueue(kueue.ClusterQueueReference(q.name)).Workloads {
			if _, isWaiting := answers[info.Obj.Name]; !isWaiting {
				continue
			}
			admitted++
			found := answer{decision: "Admit"}
			for resource, flavor := range info.Obj.Status.Admission.PodSetAssignments[0].Flavors {
				found.flavors = append(found.flavors, fmt.Sprintf("%s=%s", resource, flavor))
			}
			sort.Strings(found.flavors)
			answers[info.Obj.Name] = found
		}
	}
	inadmissible := 0
	for _, aside := range queues.DumpInadmissible() {
		inadmissible += len(aside)
	}
	return answers, admitted+inadmissible == len(s.waiting), nil
}
