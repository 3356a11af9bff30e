package commit

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/etcdtest"
	"hooklock/etcdlock/link"
	"hooklock/etcdlock/protocol"
)

// gateKV lets one request through for each token in gate, and says how many transactions were in
// it.
type gateKV struct {
	clientv3.KV
	etcdtest.Through
	gate  chan struct{}
	sizes chan int
}

// Commit implements link.Committer. The time at the gate is the test's, and that of a busy machine:
// it counts against no limit.
func (kv *gateKV) Commit(ctx context.Context, txn *pb.TxnRequest) (*pb.TxnResponse, error) {
	kv.sizes <- len(txn.Success)
	<-kv.gate
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	return kv.Through.Commit(ctx, txn)
}

// gatedSender sends into a real etcd when the test lets it.
func gatedSender(t *testing.T) (*Sender, *gateKV, *etcdtest.Etcd) {
	t.Helper()
	return gatedSenderAt(t, etcdtest.Start(t))
}

func gatedSenderAt(t *testing.T, e *etcdtest.Etcd) (*Sender, *gateKV, *etcdtest.Etcd) {
	t.Helper()
	client := etcdtest.Dial(t, e.Endpoint)
	kv := &gateKV{KV: client.KV, Through: etcdtest.ThroughOf(client), gate: make(chan struct{}, 1000),
		sizes: make(chan int, 1000)}
	client.KV = kv
	p, err := link.OpenPool(&link.Target{Client: client})
	if err != nil {
		t.Fatal(err)
	}
	s := NewSender(p, link.SystemClock(), NewTasks())
	t.Cleanup(s.Close)
	return s, kv, e
}

func putRequest(place, key string) *Request {
	return NewRequest(place, protocol.Note(key, protocol.Leased{Value: []byte("v")}), 1)
}

// sendTogether sends requests between which no time passes for the sender: a place that is kept for
// an end is kept for all of them.
func sendTogether(s *Sender, all ...*Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range all {
		s.sendLocked(r)
	}
}

func open2(kv *gateKV) { kv.gate <- struct{}{}; kv.gate <- struct{}{} }

func TestWhatComesTogetherTravelsTogether(t *testing.T) {
	s, kv, _ := gatedSender(t)
	var all []*Request
	for i := range 2 + maxBatch + 7 {
		r := putRequest(fmt.Sprintf("w%d", i), fmt.Sprintf("k%d", i))
		all = append(all, r)
		s.Send(r)
	}
	if a, b := <-kv.sizes, <-kv.sizes; a != 1 || b != 1 {
		t.Fatalf("nobody is to wait for company: batches of %d and %d", a, b)
	}
	open2(kv)
	if a, b := <-kv.sizes, <-kv.sizes; a+b != maxBatch+7 || max(a, b) != maxBatch {
		t.Fatalf("batches of %d and %d", a, b)
	}
	open2(kv)
	applied(t, all...)
}

func TestOneWorkflowIsInOneUnansweredRequestAndDelaysNoOther(t *testing.T) {
	s, kv, _ := gatedSender(t)
	first := putRequest("hot", "k")
	s.Send(first)
	<-kv.sizes // out, and no answer yet
	var hot []*Request
	for range 50 {
		r := putRequest("hot", "k")
		hot = append(hot, r)
		s.Send(r)
	}
	other := putRequest("other", "k2")
	s.Send(other)
	if n := <-kv.sizes; n != 1 {
		t.Fatalf("a batch of %d: the hot workflow is in two requests", n)
	}
	open2(kv)
	for range 50 {
		kv.gate <- struct{}{}
	}
	for i, r := range append([]*Request{first, other}, hot...) {
		if answer := <-r.Reply; answer.Err != nil {
			t.Fatalf("%d: %v", i, answer.Err)
		}
	}
	for range 50 {
		if n := <-kv.sizes; n != 1 {
			t.Fatalf("a batch of %d for one workflow", n)
		}
	}
}

// A claim and a settle have the time of one request to etcd, of which a little is over when they
// leave.
func TestWhatCanLeaveAtOnceIsAnsweredWhenItsCallerReturns(t *testing.T) {
	s, kv, _ := gatedSender(t)
	begin := time.Now()
	s.clock.Now = func() time.Time { return begin.Add(time.Millisecond) }
	ctx, cancel := context.WithDeadline(t.Context(), begin.Add(2*link.LimitsFor(0).Txn))
	defer cancel()
	kv.gate <- struct{}{}
	r := putRequest("w", "k")
	s.SendInPlace(ctx, r)
	select {
	case answer := <-r.Reply:
		if !answer.Applied() {
			t.Fatal(answer.Err)
		}
	default:
		t.Fatal("not answered")
	}
}

func TestACallerDoesNotWaitInPlaceForOthersOrForLongerThanItMay(t *testing.T) {
	s, kv, _ := gatedSender(t)
	soon, cancel := context.WithTimeout(context.Background(), s.pool.Txn)
	defer cancel()
	first, second, third := putRequest("v", "1"), putRequest("w", "2"), putRequest("x", "3")
	s.SendInPlace(soon, first) // a request may take longer than soon
	s.Send(second)
	s.SendInPlace(context.Background(), third) // as many as may are under way
	open2(kv)
	kv.gate <- struct{}{}
	applied(t, first, second, third)
}

func TestWhatWaitsForAKeyOfARequestInPlaceLeavesBehindIt(t *testing.T) {
	s, kv, _ := gatedSender(t)
	first, second := putRequest("w", "1"), putRequest("w", "2")
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.SendInPlace(context.Background(), first)
	}()
	<-kv.sizes
	s.SendInPlace(context.Background(), second) // it returns: first has the key
	open2(kv)
	applied(t, first, second)
	<-done
}

func TestAWithdrawnRequestIsNeverSent(t *testing.T) {
	s, kv, e := gatedSender(t)
	s.Send(putRequest("w", "first"))
	<-kv.sizes
	r := putRequest("w", "second")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if answer := s.Do(ctx, r); !link.Definite(answer.Err) {
		t.Fatalf("got %v", answer.Err)
	}
	last := putRequest("w", "third")
	s.Send(last)
	open2(kv)
	if answer := <-last.Reply; answer.Err != nil {
		t.Fatal(answer.Err)
	}
	if got, err := e.Client.Get(within(t, patience), "second"); err != nil || got.Count != 0 {
		t.Fatalf("%d %v", got.Count, err)
	}
}

func TestARequestThatHasLeftCannotBeWithdrawn(t *testing.T) {
	s, kv, _ := gatedSender(t)
	r := putRequest("w", "k")
	s.Send(r)
	<-kv.sizes
	if s.Withdraw(r) {
		t.Fatal("withdrawn")
	}
	open2(kv)
	if answer := <-r.Reply; answer.Err != nil {
		t.Fatal(answer.Err)
	}
}

// applied waits for the answers, and fails the test where a request was refused.
func applied(t *testing.T, all ...*Request) {
	t.Helper()
	for _, r := range all {
		if answer := <-r.Reply; answer.Err != nil || !answer.Succeeded {
			t.Fatal(answer.Err)
		}
	}
}

// comingRequest is an enqueue of a contended workflow.
func comingRequest(place, key string) *Request {
	r := putRequest(place, key)
	r.Side, r.Contended, r.HoldUntil = Enqueues, true, time.Now().Add(BatchWindow)
	return r
}

func TestAnEnqueueOfAContendedWorkflowCommitsWithTheNextSettle(t *testing.T) {
	s, kv, _ := gatedSender(t)
	all := []*Request{comingRequest("w", "a"), comingRequest("w", "b"), putRequest("w", "end")}
	all[2].Side = Ends
	sendTogether(s, all...)
	for range all {
		kv.gate <- struct{}{}
	}
	applied(t, all...)
	if n := <-kv.sizes; n != 3 {
		t.Fatalf("a batch of %d", n)
	}
}

func TestAnEnqueueThatHasWaitedForASettleDoesNotWaitForAnother(t *testing.T) {
	for name, before := range map[string][]*Request{"alone": nil, "beside another enqueue": {comingRequest("w", "a")}} {
		t.Run(name, func(t *testing.T) {
			s, kv, _ := gatedSender(t)
			refused, end := comingRequest("w", "refused"), putRequest("w", "end")
			refused.HoldUntil, refused.Refusals, end.Side = time.Now(), 1, Ends
			for _, r := range append(before, refused, end) {
				s.Send(r)
			}
			for range len(before) + 2 {
				kv.gate <- struct{}{}
			}
			applied(t, append(before, refused, end)...)
			if n := <-kv.sizes; n != 1 {
				t.Fatalf("a batch of %d", n)
			}
		})
	}
}

func TestAnEnqueueDoesNotWaitForTheAnswerToOneThatIsNotHeld(t *testing.T) {
	s, kv, _ := gatedSender(t)
	comes, refused := comingRequest("w", "a"), comingRequest("w", "refused")
	refused.HoldUntil, refused.Refusals = time.Now(), 1
	s.Send(comes)
	s.Send(refused)
	for range 2 { // both are out, and no answer yet
		select {
		case <-kv.sizes:
		case <-within(t, patience).Done():
			t.Error("it waits for the answer to the other one")
		}
	}
	open2(kv)
	for _, r := range []*Request{comes, refused} {
		if answer := <-r.Reply; answer.Err != nil {
			t.Fatal(answer.Err)
		}
	}
}

// An enqueue that is refused is not held for as long again, also where another one is.
func TestAnEnqueueWaitsForASettleNoLongerThanTheFirstOne(t *testing.T) {
	s, kv, _ := gatedSender(t)
	s.mu.Lock()
	at := &conflict{}
	s.conflicts["w"] = at
	s.holdLocked("w", at, 2*patience)
	s.mu.Unlock()
	first := comingRequest("w", "first")
	s.Send(first)
	kv.gate <- struct{}{}
	applied(t, first)
}

func TestAnEnqueueOfAContendedWorkflowCommitsAloneWhereNoSettleComes(t *testing.T) {
	s, kv, _ := gatedSender(t)
	all := []*Request{comingRequest("w", "a"), comingRequest("w", "b")}
	sendTogether(s, all...)
	for range all {
		kv.gate <- struct{}{}
	}
	applied(t, all...)
	if n := <-kv.sizes; n != 2 {
		t.Fatalf("a batch of %d", n)
	}
}

func TestAClaimWaitsForNoSettle(t *testing.T) {
	for name, company := range map[string][]*Request{"alone": nil,
		"beside another enqueue": {comingRequest("w", "a")}} {
		t.Run(name, func(t *testing.T) {
			s, kv, _ := gatedSender(t)
			s.mu.Lock()
			at := &conflict{}
			s.conflicts["w"] = at
			s.holdLocked("w", at, patience)
			s.mu.Unlock()
			claim := putRequest("w", "claim")
			for _, r := range append(company, claim) {
				s.Send(r)
				kv.gate <- struct{}{}
			}
			applied(t, append(company, claim)...)
			for range len(company) + 1 {
				if n := <-kv.sizes; n != 1 {
					t.Errorf("a batch of %d: he is in one request with who came before him", n)
				}
			}
			if len(kv.sizes) > 0 {
				t.Error("something was sent twice")
			}
		})
	}
}

func TestAMissingLeaseFailsItsMemberAlone(t *testing.T) {
	s, kv, _ := gatedSender(t)
	s.Send(putRequest("a", "a"))
	s.Send(putRequest("b", "b"))
	<-kv.sizes
	<-kv.sizes
	var good []*Request
	bad := NewRequest("bad", protocol.Note("bad", protocol.Leased{Value: []byte("v"), Lease: 12345}), 1)
	for i := range 4 {
		r := putRequest(fmt.Sprintf("w%d", i), fmt.Sprintf("k%d", i))
		good = append(good, r)
		s.Send(r)
	}
	s.Send(bad)
	for range 20 {
		kv.gate <- struct{}{}
	}
	for _, r := range good {
		if answer := <-r.Reply; answer.Err != nil || !answer.Succeeded {
			t.Fatalf("in bad company: %v", answer.Err)
		}
	}
	if answer := <-bad.Reply; !link.Definite(answer.Err) {
		t.Fatalf("got %v", answer.Err)
	}
}

// etcd refuses a request above --max-request-bytes, and gRPC one that is 512 KiB larger, in words
// of its own.
func TestAGroupThatIsRefusedForItsSizeRefusesNoNeighbour(t *testing.T) {
	for name, size := range map[string]int{"by etcd": 33 << 10, "by gRPC": 600 << 10} {
		t.Run(name, func(t *testing.T) {
			s, kv, _ := gatedSenderAt(t, etcdtest.StartWithRequestBytes(t, 32<<10))
			s.Send(putRequest("a", "a"))
			s.Send(putRequest("b", "b"))
			<-kv.sizes
			<-kv.sizes
			bad := NewRequest("bad", protocol.Note("bad", protocol.Leased{Value: make([]byte, size)}), 1)
			s.Send(bad)
			var good []*Request
			for i := range 7 {
				r := NewRequest(fmt.Sprintf("w%d", i),
					protocol.Note(fmt.Sprintf("k%d", i), protocol.Leased{Value: make([]byte, 20<<10)}), 1)
				good = append(good, r)
				s.Send(r)
			}
			for range 30 {
				kv.gate <- struct{}{}
			}
			applied(t, good...)
			if answer := <-bad.Reply; !link.Definite(answer.Err) || !link.TooLarge(answer.Err) {
				t.Fatalf("got %v", answer.Err)
			}
		})
	}
}

func TestABatchStaysBelowItsSize(t *testing.T) {
	s, kv, _ := gatedSender(t)
	s.Send(putRequest("a", "a"))
	s.Send(putRequest("b", "b"))
	<-kv.sizes
	<-kv.sizes
	for i, size := range []int{MaxBatchBytes / 2, MaxBatchBytes / 2, 1, protocol.MaxRecordBytes} {
		r := putRequest(fmt.Sprintf("w%d", i), fmt.Sprintf("k%d", i))
		r.Size = size
		s.Send(r)
	}
	for range 20 {
		kv.gate <- struct{}{}
	}
	sizes := []int{<-kv.sizes, <-kv.sizes, <-kv.sizes} // two are on their way at once, so in any order
	slices.Sort(sizes)
	if !slices.Equal(sizes, []int{1, 1, 2}) {
		t.Fatalf("batches of %v", sizes)
	}
}
