//go:build linux

package kubelet

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	core "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// Config says what a node is.
type Config struct {
	Node string // its name, and a label of it
	// API is how the API server is reached.
	API *rest.Config
	// Dir is an empty folder on one file system with the images' roots; it is the caller's to
	// remove.
	Dir string
	// Bridge is the network interface that pods are connected to. It has the first address of Pods.
	Bridge string
	Pods   netip.Prefix
	// Images are by the name that pods have for them, without a tag. A pod with another image waits
	// for ever.
	Images map[string]Image
	// Say is told what a person would like to know afterwards, one line at a time, from several
	// goroutines.
	Say func(format string, args ...any)
}

// Kubelet runs until the context of Start ends.
type Kubelet struct {
	Config

	core   core.CoreV1Interface
	leases coordination.LeaseInterface
	hosts  *hosts
	work   sync.WaitGroup

	mu   sync.Mutex
	pods map[types.UID]*pod
	// by namespace and name: a StatefulSet's pod that comes again has the address that it had
	ips  map[string]netip.Addr
	last netip.Addr
}

// Start registers the node, and runs pods until ctx ends; Wait waits for the end.
func Start(ctx context.Context, c Config) (*Kubelet, error) {
	clients, err := core.NewForConfig(c.API)
	if err != nil {
		return nil, fmt.Errorf("client of the API server: %w", err)
	}
	leases, err := coordination.NewForConfig(c.API)
	if err != nil {
		return nil, fmt.Errorf("client of the API server: %w", err)
	}
	k := &Kubelet{
		Config: c, core: clients, leases: leases.Leases(corev1.NamespaceNodeLease),
		hosts: &hosts{dir: filepath.Join(c.Dir, "hosts")},
		pods:  map[types.UID]*pod{}, ips: map[string]netip.Addr{}, last: c.Pods.Addr().Next(),
	}
	if err := os.MkdirAll(k.hosts.dir, 0o755); err != nil {
		return nil, err
	}
	if err := k.register(ctx); err != nil {
		return nil, fmt.Errorf("register the node %s: %w", c.Node, err)
	}
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.NewListWatchFromClient(clients.RESTClient(), "pods", "",
			fields.OneTermEqualSelector("spec.nodeName", c.Node)),
		ObjectType: &corev1.Pod{},
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(o any) { k.saw(ctx, o.(*corev1.Pod)) },
			UpdateFunc: func(_, o any) { k.saw(ctx, o.(*corev1.Pod)) },
			DeleteFunc: func(o any) {
				if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
					o = gone.Obj
				}
				k.gone(o.(*corev1.Pod))
			},
		},
	})
	k.work.Go(func() { informer.Run(ctx.Done()) })
	k.work.Go(func() { k.renew(ctx) })
	return k, nil
}

// Wait returns when the context of Start has ended and all that ran has been killed.
func (k *Kubelet) Wait() { k.work.Wait() }

func (k *Kubelet) register(ctx context.Context) error {
	host := k.Pods.Addr().Next().String()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: k.Node, Labels: map[string]string{
		corev1.LabelHostname: k.Node, corev1.LabelOSStable: "linux", corev1.LabelTopologyZone: k.Node,
	}}}
	room := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("256Gi"),
		corev1.ResourcePods:             resource.MustParse("200"),
		corev1.ResourceEphemeralStorage: resource.MustParse("100Gi"),
	}
	now := metav1.Now()
	node.Status = corev1.NodeStatus{
		Capacity: room, Allocatable: room,
		Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: host},
			{Type: corev1.NodeHostName, Address: k.Node}},
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue,
			Reason: "KubeletReady", LastHeartbeatTime: now, LastTransitionTime: now}},
		NodeInfo: corev1.NodeSystemInfo{KubeletVersion: "v1.36.1", OperatingSystem: "linux", Architecture: "amd64",
			ContainerRuntimeVersion: "processes://1"},
	}
	_, err := k.core.Nodes().Create(ctx, node, metav1.CreateOptions{})
	return err
}

// renew keeps the node from being taken for dead.
func (k *Kubelet) renew(ctx context.Context) {
	seconds := int32(40)
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: k.Node},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &k.Node, LeaseDurationSeconds: &seconds}}
	for tick := time.NewTicker(5 * time.Second); ; {
		now := metav1.NowMicro()
		lease.Spec.RenewTime = &now
		var err error
		if lease.ResourceVersion == "" {
			var made *coordinationv1.Lease
			if made, err = k.leases.Create(ctx, lease, metav1.CreateOptions{}); err == nil {
				lease = made
			}
		} else {
			var renewed *coordinationv1.Lease
			if renewed, err = k.leases.Update(ctx, lease, metav1.UpdateOptions{}); err == nil {
				lease = renewed
			}
		}
		if err != nil && ctx.Err() == nil {
			k.Say("node lease: %v", err)
		}
		select {
		case <-ctx.Done():
			tick.Stop()
			return
		case <-tick.C:
		}
	}
}

// saw is told of each pod of the node that is new or has changed.
func (k *Kubelet) saw(ctx context.Context, o *corev1.Pod) {
	k.mu.Lock()
	defer k.mu.Unlock()
	p := k.pods[o.UID]
	if p == nil {
		if o.Status.Phase == corev1.PodSucceeded || o.Status.Phase == corev1.PodFailed {
			return
		}
		p = newPod(k, o, k.address(o))
		k.pods[o.UID] = p
		k.work.Go(func() { p.run(ctx) })
	}
	if o.DeletionTimestamp != nil {
		p.end(*o.DeletionGracePeriodSeconds)
	}
}

// gone is told of a pod that is no more: by us, or by force.
func (k *Kubelet) gone(o *corev1.Pod) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if p := k.pods[o.UID]; p != nil {
		p.kill()
		delete(k.pods, o.UID)
	}
}

func (k *Kubelet) address(o *corev1.Pod) netip.Addr {
	name := o.Namespace + "/" + o.Name
	ip, known := k.ips[name]
	if !known {
		k.last = k.last.Next()
		ip = k.last
		k.ips[name] = ip
	}
	k.hosts.add(o, ip)
	return ip
}
