package protocol

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"hooklock/idem"
)

// What stands in etcd is a promise to the release before: which names, which of them are left out,
// how times and durations are spelled. The order of the names is none, but for the version.
func TestWhatIsStoredStays(t *testing.T) {
	east := time.FixedZone("", 3600)
	full := sampleLock()
	full.StartedAt, full.CoolUntil = full.StartedAt.In(east), full.CoolUntil.In(east)
	const nobody = `"00000000000000000000000000000000"`
	for name, c := range map[string]struct {
		encode func() ([]byte, error)
		want   string
	}{
		"a lock with everything": {func() ([]byte, error) { return EncodeLock(full) }, `{
			"v":1,"executionId":"exec_a","workflow":"w/\"1\"","key":"k","perEvent":true,"alive":"sessions/s","holder":"host/1/s","route":"r","eventId":"e",
			"fingerprint":"01020000000000000000000000000000","parts":"AQIAAAAAAAAAAAAA","credentials":"c","callbackHash":"h","traceParent":"t","attempt":3,
			"earlier":[{"executionId":"exec_b","status":"FAILED","outcome":"unknown","startedAt":"2026-01-02T03:04:05.006Z","finishedAt":"2026-01-02T03:04:05.006Z"}],
			"startedAt":"2026-01-02T03:04:05.006Z","maxDurationNs":3600000000000,"releaseDelayNs":1000000000,"retentionNs":60000000000,"replayBody":5,"plan":["one","two"],
			"steps":[{"name":"one","status":"done","startedAt":"2026-01-02T03:04:05.006Z","finishedAt":"2026-01-02T03:04:05.006Z"}],
			"held":true,"holdTtlNs":60000000000,"cancel":{"by":"ops","reason":"why","at":"2026-01-02T03:04:05.006Z","final":true},
			"cooling":true,"coolUntil":"2026-01-02T03:04:05.006Z"}`},
		"a lock with nothing": {func() ([]byte, error) {
			return EncodeLock(&idem.Lock{ExecutionFacts: idem.ExecutionFacts{Execution: "exec_c", Token: 9},
				Revision: 9, Dead: true,
				HoldUntil: full.StartedAt})
		}, `{
			"v":1,"executionId":"exec_c","workflow":"","key":"","alive":"","holder":"","route":"","fingerprint":` + nobody + `,"attempt":0,
			"startedAt":"0001-01-01T00:00:00Z","retentionNs":0}`},
		"a parked lock": {func() ([]byte, error) { return EncodeLock(parkedLock()) }, `{
			"v":2,"executionId":"exec_c","workflow":"w","key":"k","alive":"","holder":"","route":"","fingerprint":` + nobody + `,"attempt":1,
			"startedAt":"2026-01-02T03:04:05.006Z","retentionNs":0,"token":11,"parked":{"since":"2026-01-02T03:04:05.006Z","on":"slow","bytes":7,"tries":2,"failures":1,
			"trying":true,"nextAttempt":"2026-01-02T03:04:05.006Z","pauseNs":60000000000,"pauses":3,"last":{"outcome":"executed","status":500,"code":"c","detail":"d","at":"2026-01-02T03:04:05.006Z"},
			"blocked":"b","maxAgeNs":3600000000000}}`},
		"a parked lock with a new token": {func() ([]byte, error) {
			l := parkedLock()
			l.Parked = &idem.Parked{Since: l.StartedAt, On: idem.ParkLocked}
			return EncodeFresh(l)
		}, `{
			"v":2,"executionId":"exec_c","workflow":"w","key":"k","alive":"","holder":"","route":"","fingerprint":` + nobody + `,"attempt":1,
			"startedAt":"2026-01-02T03:04:05.006Z","retentionNs":0,"fresh":true,"parked":{"since":"2026-01-02T03:04:05.006Z","on":"locked","bytes":0}}`},
		"an index entry": {func() ([]byte, error) { return EncodeIndex(IndexOf(parkedLock())), nil }, `{
			"v":1,"workflow":"w","key":"k","route":"","since":"2026-01-02T03:04:05.006Z","bytes":7,"state":"blocked","maxAgeNs":3600000000000}`},
	} {
		t.Run(name, func(t *testing.T) {
			b, err := c.encode()
			if err != nil {
				t.Fatal(err)
			}
			var got, want any
			if err := json.NewDecoder(bytes.NewReader(b)).Decode(&got); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal([]byte(c.want), &want); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("stored\n%s\nand not\n%s", b, c.want)
			}
		})
	}
}
