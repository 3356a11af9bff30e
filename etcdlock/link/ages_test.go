package link

import (
	"testing"
	"time"
)

func TestARevisionIsAsOldAsItsFirstSight(t *testing.T) {
	var boot time.Duration
	wall := time.Unix(1e9, 0)
	p := &Pool{moved: make(chan struct{}), ages: ages{clock: Clock{Now: func() time.Time {
		return wall
	}, Boot: func() time.Duration { return boot }}}}
	expect := func(revision int64, want time.Duration) {
		t.Helper()
		if got := p.Age(revision); got != want {
			t.Errorf("revision %d is %v old, want %v", revision, got, want)
		}
	}
	expect(5, 0)
	p.compareRevision(moment{}, 5)
	boot = time.Second
	p.noteRevision(5) // it is no news
	expect(5, time.Second)
	expect(4, time.Second) // it was there before
	expect(6, 0)
	expect(0, 0) // nothing was written
	p.noteRevision(6)
	boot += ageStep / 2
	p.noteRevision(7) // in the step of 6
	boot += time.Minute
	expect(7, time.Minute)
	expect(6, time.Minute)
	expect(5, time.Minute+time.Second+ageStep/2)
	p.compareRevision(moment{revision: 7}, 3) // etcd has gone back
	expect(3, 0)
	p.compareRevision(moment{3, 1}, 8)
	boot += time.Minute
	expect(5, time.Minute)
}

func TestTheHistoryOfRevisionsIsBounded(t *testing.T) {
	var boot time.Duration
	began := time.Unix(1e9, 0)
	a := ages{clock: Clock{Now: func() time.Time { return began }, Boot: func() time.Duration { return boot }}}
	for i := range int64(10 * maxAges) {
		a.noteRevision(i + 1)
		boot += ageStep
	}
	if len(a.known) > maxAges {
		t.Fatalf("%d are kept", len(a.known))
	}
	for i := range int64(10 * maxAges) {
		if got, age := a.ageOf(i+1), boot-time.Duration(i)*ageStep; got > age || got < age/2 && age > 20*ageStep {
			t.Fatalf("revision %d is %v old, and said to be %v old", i+1, age, got)
		}
	}
}
