package diagnose

import (
	"strings"
	"testing"
	"time"

	"hooklock/etcdlock/link"
)

func TestTheClockIsJudgedByWhatASessionNeedsOfIt(t *testing.T) {
	today := sane.AddDate(1, 0, 0)
	for _, c := range []struct {
		name         string
		start        time.Time
		passed, boot time.Duration // on the monotonic clock, and on the boot clock, which began at an hour
		noBoot       bool
		result       Result
		says         string
	}{
		{"as it should be", today, time.Second, time.Second, false, OK, "etcd, which tells no time"},
		{"suspended meanwhile", today, time.Second, time.Minute, false, Warning, "stood still for 59s"},
		{"no boot clock", today, time.Second, 0, true, Warning, "while the machine is suspended"},
		{"never set", time.Unix(0, 0), time.Second, time.Second, false, Failed, "1970-01-01"},
	} {
		t.Run(c.name, func(t *testing.T) {
			now, boot := c.start, time.Hour
			if c.noBoot {
				boot = 0
			}
			end := watchClock(link.Clock{Now: func() time.Time {
				return now
			}, Boot: func() time.Duration { return boot }})
			now, boot = now.Add(c.passed), boot+c.boot
			if f := end(); f.Result != c.result || !strings.Contains(f.Found, c.says) ||
				(f.Result != OK && f.Advice == "") {
				t.Errorf("got %+v", f)
			}
		})
	}
	if f := Clock()(); f.Result == Failed {
		t.Errorf("this machine: %+v", f)
	}
}
