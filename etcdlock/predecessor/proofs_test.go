package predecessor

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"hooklock/etcdlock/etcdtest"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

func proofOf(n byte, detail string) *protocol.Proof {
	return &protocol.Proof{
		Execution: idem.NewExecutionID("orders", idem.MakeKey(7, [16]byte{1}), [4]byte{0, 0, 0, n}),
		End: idem.End{Status: idem.Failed, Outcome: idem.Executed, FinishedAt: time.Unix(1_700_000_000, 0).UTC(),
			Error: &idem.Failure{Code: "upstream_failed", Detail: detail}},
		Status: 500, Bytes: 12, Counts: []idem.Counted{{Route: "hook", Kinds: idem.CountSetOf(idem.CountFailed)}},
	}
}

// settled collects the proofs that the next process is given.
func (r *rig) settled(err error) func() []idem.ExecutionID {
	var mu sync.Mutex
	var all []idem.ExecutionID
	r.o.Settle = func(_ context.Context, proof *protocol.Proof, sessions []string) error {
		mu.Lock()
		defer mu.Unlock()
		if !slices.Equal(sessions, []string{"theirs"}) || proof.Status != 500 || proof.Counts[0].Route != "hook" {
			r.t.Errorf("%v %+v", sessions, proof)
		}
		all = append(all, proof.Execution)
		return err
	}
	return func() []idem.ExecutionID {
		mu.Lock()
		defer mu.Unlock()
		slices.Sort(all)
		return slices.Clone(all)
	}
}

// diedWith leaves the file of a process that had the session "theirs" and wrote what write writes.
func (r *rig) diedWith(write func(*Predecessors)) {
	r.t.Helper()
	p := New(r.o)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); p.Run(ctx) }()
	p.Opening(etcdtest.Within(r.t, etcdtest.Patience), r.session("theirs"), "theirs", "")
	write(p)
	stop()
	<-done
	p.Close(false)
}

func TestProofsOfADeadProcessAreSettledBeforeItsSessionEnds(t *testing.T) {
	r := newRig(t)
	r.diedWith(func(p *Predecessors) {
		first := p.Write(proofOf(1, ""))
		if second := p.Write(proofOf(2, strings.Repeat("long", 500))); first != 0 || second != 1 {
			t.Errorf("slots %d and %d", first, second)
		}
		p.Free(first)
		if again := p.Write(proofOf(3, "")); again != first {
			t.Errorf("a slot that was given back is not used again, but %d", again)
		}
		if slot := p.Write(&protocol.Proof{Execution: proofOf(4, "").Execution,
			Counts: make([]idem.Counted, 500)}); slot != NoSlot {
			t.Errorf("a proof that is too long is in slot %d", slot)
		}
	})
	got := r.settled(nil)
	settle := r.o.Settle
	r.o.Settle = func(ctx context.Context, proof *protocol.Proof, sessions []string) error {
		if !r.alive("theirs") {
			t.Error("its session ended before")
		}
		return settle(ctx, proof, sessions)
	}
	r.starts()
	if want := []idem.ExecutionID{proofOf(2, "").Execution, proofOf(3, "").Execution}; !slices.Equal(got(), want) {
		t.Errorf("settled %v, want %v", got(), want)
	}
	if r.alive("theirs") {
		t.Error("its session has not ended")
	}
}

func TestAProofThatCannotBeSettledNowIsTriedAgainAndItsSessionStays(t *testing.T) {
	r := newRig(t)
	r.diedWith(func(p *Predecessors) { p.Write(proofOf(1, "")) })
	r.settled(errors.New("etcd is away"))
	settle, tried := r.o.Settle, make(chan struct{}, 10)
	r.o.Settle = func(ctx context.Context, proof *protocol.Proof, sessions []string) error {
		tried <- struct{}{}
		return settle(ctx, proof, sessions)
	}
	r.starts()
	<-tried
	<-tried // again
	if !r.alive("theirs") {
		t.Error("the session has ended")
	}
}

func TestWithAProofInUseTheFileStaysAfterAnOrderlyEnd(t *testing.T) {
	for what, free := range map[string]bool{"in use": false, "given back": true} {
		t.Run(what, func(t *testing.T) {
			r := newRig(t)
			p := New(r.o)
			ctx, stop := context.WithCancel(context.Background())
			done := make(chan struct{})
			go func() { defer close(done); p.Run(ctx) }()
			p.Opening(etcdtest.Within(t, etcdtest.Patience), r.session("mine"), "mine", "")
			if slot := p.Write(proofOf(1, "")); free {
				p.Free(slot)
			}
			stop()
			<-done
			p.Close(true)
			if slot := p.Write(proofOf(2, "")); slot != NoSlot {
				t.Errorf("after the end a proof is in slot %d", slot)
			}
			left, err := os.ReadDir(r.o.Dir)
			if err != nil || len(left) == 0 != free {
				t.Errorf("left: %v, %v", left, err)
			}
		})
	}
}

func TestWithoutAFileOrAFreeSlotNothingIsWritten(t *testing.T) {
	var none *Predecessors
	none.Free(none.Write(proofOf(1, "")))
	r := newRig(t)
	if slot := New(r.o).Write(proofOf(1, "")); slot != NoSlot {
		t.Errorf("slot %d of no file", slot)
	}
	p := r.starts()
	for n := range slotCount {
		if slot := p.Write(proofOf(1, "")); slot != n {
			t.Fatalf("slot %d, want %d", slot, n)
		}
	}
	if slot := p.Write(proofOf(1, "")); slot != NoSlot {
		t.Errorf("slot %d of a full file", slot)
	}
}

func TestADiskThatHangsIsNotWrittenTo(t *testing.T) {
	r := newRig(t)
	p := r.starts()
	p.slots.since.Store(r.o.Clock.Now().Add(-time.Second).UnixNano())
	if slot := p.Write(proofOf(1, "")); slot != NoSlot {
		t.Errorf("slot %d while a write has not come back for a second", slot)
	}
}

func FuzzReadSlot(f *testing.F) {
	whole := slotOf(proofOf(1, "why"))
	f.Add(whole)
	f.Add(whole[:len(whole)-1])
	f.Add(make([]byte, slotSize))
	f.Fuzz(func(t *testing.T, page []byte) {
		if len(page) < slotHead {
			return
		}
		if proof := proofIn(page); proof != nil && slotOf(proof) == nil {
			t.Errorf("%+v cannot be written", proof)
		}
	})
}
