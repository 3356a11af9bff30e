package protocol

import (
	"encoding/hex"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"hooklock/idem"
)

// settledRecord is one as the proxy makes most of them.
func settledRecord() *idem.Record {
	key := idem.MakeKey(idem.HashEventID("evt_1PqR0000000000000001"), [16]byte{1, 2, 3})
	at := time.Date(2026, 1, 2, 3, 4, 5, 6000000, time.UTC)
	f := idem.Fingerprint{1, 15: 2}
	const body = `{"received":true,"id":"12345"}`
	return &idem.Record{
		ExecutionFacts: idem.ExecutionFacts{
			Execution: idem.NewExecutionID("stripe/cus_1", key, [4]byte{1, 2, 3, 4}),
			Scope:     idem.Scope{Workflow: "stripe/cus_1", Key: key}, Route: "stripe",
			EventID: "evt_1PqR0000000000000001", Fingerprint: f, Parts: idem.Parts{1, 11: 2},
			CallbackHash: f.Hex()[:20], Holder: "webhooks-5d8f7c9b6-x2x7q/1/qrw772hapqfrldz6",
			TraceParent: "00-0102030405060708090a0b0c0d0e0f10-0102030405060708-01", Attempt: 1, StartedAt: at,
			Retention: 24 * time.Hour, Token: 1 << 30,
		},
		End: idem.End{Status: idem.Success, Outcome: idem.Executed, FinishedAt: at.Add(12345000), Remembered: true,
			Answer: &idem.Answer{
				Status: 200, Bytes: int64(len(body)), Whole: true,
				Header: []idem.HeaderField{{Name: "Content-Type", Value: "application/json"}}, Body: []byte(body),
			}},
	}
}

func kvOf(scope idem.Scope, value []byte) *mvccpb.KeyValue {
	return &mvccpb.KeyValue{Key: []byte(NewLayout("/hooklock").Record(scope)), Value: value}
}

func encoded(t testing.TB, r *idem.Record) *mvccpb.KeyValue {
	t.Helper()
	b, err := EncodeRecord(r, "qrw772hapqfrldz6")
	if err != nil {
		t.Fatal(err)
	}
	return kvOf(r.Scope, b)
}

func TestARecordComesBackAsItWasWritten(t *testing.T) {
	full := &idem.Record{}
	var n int64
	set(t, reflect.ValueOf(full).Elem(), &n)
	full.Status, full.Outcome, full.Error, full.Revision, full.Size = idem.Aborted, idem.NotExecuted, nil, 0, 0
	full.Answer.Apart, full.Answer.Left, full.Answer.Hash = false, false, ""
	full.StartedAt, full.FinishedAt = full.StartedAt.Truncate(time.Microsecond),
		full.FinishedAt.Truncate(time.Microsecond)
	full.Abort.Only, full.Abort.Erase, full.Tried, full.Remembered = "", false, nil, false // these are not stored
	for i := range full.Earlier {
		full.Earlier[i].Abort.Only, full.Earlier[i].Abort.Erase = "", false
	}
	full.Answer.Header = []idem.HeaderField{{Name: "content-Type", Value: "r\xe9sum\xe9"},
		{Name: "Content-Type", Value: "text/plain"}}
	nothing := &idem.Record{ExecutionFacts: idem.ExecutionFacts{Execution: "exec_c"},
		End: idem.End{Status: idem.Failed, Outcome: idem.Unknown, Error: &idem.Failure{Code: "x"}}}
	labelled := settledRecord()
	labelled.Labels = idem.Labels{{Name: "order", Value: "1042"}}
	for name, r := range map[string]*idem.Record{"settled": settledRecord(), "everything": full, "nothing": nothing,
		"sample": sampleRecord(), "labelled": labelled} {
		got, writer, err := DecodeRecord(encoded(t, r))
		if err != nil || writer != "qrw772hapqfrldz6" || !reflect.DeepEqual(got, r) {
			t.Errorf("%s\n%+v and not\n%+v, %s, %v", name, got, r, writer, err)
		}
	}
}

// TestARecordTakesLittle is the diet: one of a settled event, with a body of 30 bytes.
func TestARecordTakesLittle(t *testing.T) {
	if n := len(encoded(t, settledRecord()).Value); n > 200 {
		t.Errorf("%d bytes", n)
	}
}

func TestALargeAnswerLeavesItsRecord(t *testing.T) {
	r := settledRecord()
	r.Answer.Body = []byte(strings.Repeat("0123456789", 30))
	r.Answer.Bytes = 300
	if value, answer, err := SplitRecord(settledRecord(), "me"); err != nil || answer != nil || len(value) < 100 {
		t.Errorf("of a small one %d bytes are apart: %v", len(answer), err)
	}
	value, answer, err := SplitRecord(r, "me")
	if err != nil || len(value) > 200 || !r.Answer.Whole {
		t.Fatalf("%d bytes, %+v, %v", len(value), r.Answer, err)
	}
	got, _, err := DecodeRecord(kvOf(r.Scope, value))
	if err != nil || !got.Remembered || !reflect.DeepEqual(got.Answer,
		&idem.Answer{Status: 200, Bytes: 300, Apart: true, Hash: got.Answer.Hash}) || len(got.Answer.Hash) != 32 {
		t.Fatalf("%+v %v", got.Answer, err)
	}
	gone := *got.Answer
	if err := DecodeAnswer(nil, &gone); err != nil || !gone.Left || gone.Apart || gone.Whole {
		t.Errorf("after its time %+v %v", gone, err)
	}
	for name, damaged := range map[string][]byte{"nothing": {}, "short": answer[:2], "newer": {answerVersion + 1}} {
		a := *got.Answer
		if err := DecodeAnswer(&mvccpb.KeyValue{Value: damaged}, &a); err == nil || a.Whole {
			t.Errorf("%s: %+v", name, a)
		}
	}
	if err := DecodeAnswer(&mvccpb.KeyValue{Value: answer}, got.Answer); err != nil || !got.Answer.Whole ||
		got.Answer.Apart || !reflect.DeepEqual(got.Answer.Header, r.Answer.Header) ||
		string(got.Answer.Body) != string(r.Answer.Body) {
		t.Errorf("%+v %v", got.Answer, err)
	}
}

// TestTheFormOfARecordStays: processes of two releases share one etcd.
func TestTheFormOfARecordStays(t *testing.T) {
	const want = "" +
		"041d1e31b3a37476ef7eb519010203046dca3b6e18818421505ee439fee62acf72edce41a6d82cda6be9a4f3856b3619b3a3747662a39dff059d1b000000" +
		"00000000000000000101000000000000000000000000000002010000000000000000000002005001000000000000000000c8010102030405060708090a0b" +
		"0c0d0e0f1001020304050607080102e0aae682d605808080800880c60a000101f2c001000190033c0201017b227265636569766564223a747275652c2269" +
		"64223a223132333435227d"
	if got := hex.EncodeToString(encoded(t, settledRecord()).Value); got != want {
		t.Errorf("%s\nand not\n%s\n: give another form another recordVersion", got, want)
	}
}

func TestTextComesBackInEveryForm(t *testing.T) {
	for _, text := range []string{
		"", "a", "ab", "aB", "abc-", "aBc/", "aBcd_ef", "a:b", "abcdefgh", "abcdefg8", "abcdef\r\n", "0a", "0A",
		strings.Repeat("ab", 64), strings.Repeat("ab", 65), strings.Repeat("z", 64), strings.Repeat("z", 72),
		"\xff\x00",
		"00-0102030405060708090a0b0c0d0e0f10-0102030405060708-01",
		"00-0102030405060708090A0b0c0d0e0f10-0102030405060708-01",
		"01-0102030405060708090a0b0c0d0e0f10-0102030405060708-01",
	} {
		c := &codec{}
		c.codeText(&text)
		got := ""
		if c = (&codec{data: c.data, reads: true}); true {
			c.codeText(&got)
		}
		if got != text || c.err != nil || len(c.data) > 0 {
			t.Errorf("%q became %q, %v", text, got, c.err)
		}
	}
}

func TestAnAnswerThatIsTooLargeIsKeptAsItsStatus(t *testing.T) {
	for name, spoil := range map[string]func(*idem.Answer){
		"body":    func(a *idem.Answer) { a.Body = make([]byte, MaxRecordBytes) },
		"headers": func(a *idem.Answer) { a.Header[0].Value = strings.Repeat("!", MaxRecordBytes) },
	} {
		t.Run(name, func(t *testing.T) {
			r := sampleRecord()
			spoil(r.Answer)
			kv := encoded(t, r)
			if len(kv.Value) > MaxRecordBytes {
				t.Fatalf("%d bytes", len(kv.Value))
			}
			got, _, err := DecodeRecord(kv)
			if err != nil || got.Answer.Whole || got.Answer.Body != nil || got.Answer.Header != nil ||
				got.Answer.Status != 200 || got.Answer.Bytes != 5 {
				t.Fatalf("%+v %v", got.Answer, err)
			}
			if r.Answer.Whole {
				t.Fatal("the writer's own record still says that the answer is whole")
			}
		})
	}
}

func TestARecordOfAnotherReleaseSaysSo(t *testing.T) {
	var newer *NewerError
	if _, _, err := DecodeRecord(&mvccpb.KeyValue{Value: []byte{recordVersion + 1, 17}}); !errors.As(err, &newer) ||
		!strings.Contains(newer.Error(), "upgrade") {
		t.Errorf("newer: %v", err)
	}
	for _, older := range []string{`{"v":1,"executionId":"exec_a"}` + "\n", "\x01"} {
		if _, _, err := DecodeRecord(&mvccpb.KeyValue{Value: []byte(older)}); !errors.Is(err, ErrOlder) {
			t.Errorf("%q: %v", older, err)
		}
	}
}

func TestARecordThatIsDamagedIsRefused(t *testing.T) {
	whole := encoded(t, settledRecord())
	answer := len(settledRecord().Answer.Body)
	for n := range len(whole.Value) - answer {
		if r, _, err := DecodeRecord(kvOf(idem.Scope{}, whole.Value[:n])); !errors.Is(err, errCorrupt) {
			t.Fatalf("%d bytes of it: %+v %v", n, r, err)
		}
	}
	r := settledRecord()
	r.Answer = nil
	kv := encoded(t, r)
	kv.Value = append(kv.Value, 0)
	if _, _, err := DecodeRecord(kv); !errors.Is(err, errCorrupt) {
		t.Errorf("more than a record: %v", err)
	}
}

func FuzzDecodeRecord(f *testing.F) {
	for _, r := range []*idem.Record{settledRecord(), sampleRecord()} {
		f.Add(encoded(f, r).Value)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, writer, err := DecodeRecord(kvOf(settledRecord().Scope, b))
		if err != nil {
			return
		}
		again, err := EncodeRecord(r, writer)
		if err != nil {
			return // it contradicts itself, or is larger than what we would write
		}
		if r2, w2, err := DecodeRecord(kvOf(settledRecord().Scope, again)); err != nil || w2 != writer ||
			!reflect.DeepEqual(r, r2) {
			t.Fatalf("%q became %q: %v\n%+v\n%+v", b, again, err, r, r2)
		}
	})
}

// set gives each field below v a value that is not zero, and none twice.
func set(t *testing.T, v reflect.Value, n *int64) {
	t.Helper()
	*n++
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(*n)
	case reflect.String:
		v.SetString("text " + string(rune('a'+*n%26)))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		set(t, v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			set(t, v.Index(i), n)
		}
	case reflect.Array:
		for i := range v.Len() {
			set(t, v.Index(i), n)
		}
	case reflect.Uint8:
		v.SetUint(uint64(*n % 251))
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Unix(*n, *n).UTC()))
			return
		}
		for _, field := range v.Fields() {
			set(t, field, n)
		}
	default:
		t.Fatalf("a %s: say here what to set", v.Type())
	}
}
