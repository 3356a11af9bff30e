package protocol

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"hooklock/idem"
)

// recordVersion is the first byte of a record. Its fields follow as codec writes them, and then the
// answer's body.
const recordVersion = 4

// answerVersion is the first byte of an answer that has a key of its own.
const answerVersion = 2

// smallAnswer is the size in bytes up to which an answer stays in its record: a key of its own
// costs etcd more.
const smallAnswer = 64

// EncodeRecord encodes r, without the answer's head and body if it would be too large: then
// r.Answer says so, too. writer is the Store that writes it: after a lost answer it recognises its
// own record.
func EncodeRecord(r *idem.Record, writer string) ([]byte, error) {
	if err := r.Check(); err != nil {
		return nil, fmt.Errorf("encode record: %w", err)
	}
	if r.Answer == nil || len(r.Answer.Body) <= MaxRecordBytes {
		b, err := encodeRecord(r, writer)
		if r.Answer == nil || !errors.Is(err, ErrTooLarge) {
			return b, err
		}
	}
	r.Answer = &idem.Answer{Status: r.Answer.Status, Bytes: r.Answer.Bytes}
	return encodeRecord(r, writer)
}

// SplitRecord is EncodeRecord for a record whose answer expires before it: r is not changed, and
// the answer is a value of its own. That is nil if it is so small that it stays with the record.
func SplitRecord(r *idem.Record, writer string) (record, answer []byte, err error) {
	if r.Answer == nil || !r.Answer.Whole {
		record, err = EncodeRecord(r, writer)
		return record, nil, err
	}
	c := &codec{data: append(make([]byte, 0, 64+len(r.Answer.Body)), answerVersion)}
	if c.codeContent(r.Answer); len(c.data) <= smallAnswer || len(c.data) > MaxRecordBytes {
		record, err = EncodeRecord(r, writer)
		return record, nil, err
	}
	bare := *r
	sum := sha256.Sum256(r.Answer.Body)
	bare.Answer = &idem.Answer{Status: r.Answer.Status, Bytes: r.Answer.Bytes, Apart: true,
		Hash: hex.EncodeToString(sum[:len(sum)/2])}
	record, err = EncodeRecord(&bare, writer)
	return record, c.data, err
}

// DecodeAnswer reads the answer that a has apart, and which is Whole then. Its body aliases the
// value. kv is nil if it has expired.
func DecodeAnswer(kv *mvccpb.KeyValue, a *idem.Answer) error {
	if kv == nil {
		a.Apart, a.Left = false, true
		return nil
	}
	c := newReader("an answer", kv.Value, answerVersion)
	if c.codeContent(a); c.err == nil {
		a.Apart, a.Whole = false, true
	}
	return c.err
}

func encodeRecord(r *idem.Record, writer string) ([]byte, error) {
	room := 384
	if r.Answer != nil {
		room += len(r.Answer.Body)
	}
	c := &codec{data: append(make([]byte, 0, room), recordVersion)}
	key, _ := r.Key.Binary()
	c.codeRecord(r, &writer, idem.KeyOf(key))
	switch {
	case c.err != nil:
		return nil, fmt.Errorf("encode record: %w", c.err)
	case len(c.data) > MaxRecordBytes:
		return nil, fmt.Errorf("encode record of %d bytes: %w", len(c.data), ErrTooLarge)
	}
	return c.data, nil
}

// DecodeRecord reads a record and which Store wrote it. The record's body aliases the value; the
// caller has to add its revision.
func DecodeRecord(kv *mvccpb.KeyValue) (*idem.Record, string, error) {
	var r idem.Record
	var writer string
	c := newReader("a record", kv.Value, recordVersion)
	if c.codeRecord(&r, &writer, keyOf(kv.Key)); c.err == nil && r.Execution == "" {
		c.fail(errors.New("it names no execution"))
	}
	if c.err != nil {
		return nil, "", c.err
	}
	return &r, writer, nil
}

// codeRecord codes r, whose key in etcd ends with key, as far as that can be read there.
func (c *codec) codeRecord(r *idem.Record, writer *string, key idem.Key) {
	answered := r.Answer != nil
	whole := answered && r.Answer.Whole
	rare := r.Error != nil || r.Abort != nil || len(r.Failed) > 0 || r.Asked != nil || !r.ProvenAt.IsZero()
	apart := answered && r.Answer.Apart
	own := strings.HasSuffix(r.Holder, "/"+*writer)
	c.codeFlags(&r.Remembered, &r.Final, &own, &answered, &whole, &rare, &apart, &r.RequestKept)
	c.codeFacts(&r.ExecutionFacts, key)
	codeWord(c, &r.Status, []idem.Status{idem.Success, idem.Failed, idem.Aborted})
	codeWord(c, &r.Outcome, []idem.Outcome{idem.Executed, idem.NotExecuted, idem.Unknown})
	c.codeMicros(&r.FinishedAt, r.StartedAt)
	c.codeInt(&r.Tries)
	codeWord(c, &r.ParkedOn, parkOns)
	if rare {
		var proven *time.Time // null where it is zero
		if !r.ProvenAt.IsZero() {
			proven = &r.ProvenAt
		}
		if c.codeJSON(&r.Error, &r.Abort, &r.Failed, &r.FailedTries, &r.Asked, &proven); proven != nil {
			r.ProvenAt = *proven
		}
	}
	if !own {
		c.codeText(writer)
	} else if c.reads {
		*writer = r.Holder[strings.LastIndexByte(r.Holder, '/')+1:]
	}
	switch {
	case answered && c.reads:
		r.Answer = &idem.Answer{Whole: whole, Apart: apart}
		fallthrough
	case answered:
		c.codeAnswer(r.Answer)
	case c.reads && len(c.data) > 0:
		c.fail(errors.New("something follows it"))
	}
}

// parkOns has "" first: most records are not of parked executions.
var parkOns = []idem.ParkOn{"", idem.ParkLocked, idem.ParkSlow, idem.ParkUnreachable, idem.ParkUnknown, idem.ParkFailed,
	idem.ParkSenderLimit, idem.ParkPaused}

func (c *codec) codeAnswer(a *idem.Answer) {
	c.codeInt(&a.Status)
	if c.codeNumber(&a.Bytes); a.Apart {
		c.codeText(&a.Hash)
	}
	c.codeContent(a)
}

// codeContent codes the head of an answer, and its body.
func (c *codec) codeContent(a *idem.Answer) {
	lines := len(a.Header)
	if c.codeInt(&lines); c.reads {
		if lines < 0 || lines > len(c.data)/2 {
			c.fail(errShort)
			return
		}
		a.Header = make([]idem.HeaderField, lines)[:lines:lines]
		if lines == 0 {
			a.Header = nil
		}
	}
	for i := range a.Header {
		codeWord(c, &a.Header[i].Name, headerNames)
		codeWord(c, &a.Header[i].Value, headerValues)
	}
	if !c.reads {
		c.data = append(c.data, a.Body...)
		return
	}
	if a.Body = c.takeBytes(uint64(len(c.data))); len(a.Body) == 0 {
		a.Body = nil
	}
}

// What most answers have in their head. An entry may be added at the end, and none may move.
var (
	headerNames = []string{"Content-Type", "content-type", "Date", "date", "Cache-Control", "cache-control", "Server",
		"server", "ETag", "etag", "X-Request-Id", "x-request-id"}
	headerValues = []string{"application/json", "application/json; charset=utf-8", "text/plain",
		"text/plain; charset=utf-8", "text/html; charset=utf-8", "no-store", "no-cache"}
)

// codeFacts codes e; key is the key of its event, if it is known.
func (c *codec) codeFacts(e *idem.ExecutionFacts, key idem.Key) {
	random, named := e.Execution.Random(e.Workflow, e.Key)
	sameKey, printed, parted, labelled := e.Key == key, e.Fingerprint != idem.Fingerprint{}, e.Parts != idem.Parts{},
		len(e.Labels) > 0
	rare := len(e.Earlier) > 0 || e.Order != nil || e.Stale != nil || len(e.Steps) > 0 || len(e.Slots) > 0
	c.codeFlags(&e.PerEvent, &sameKey, &named, &printed, &parted, &rare, &labelled)
	c.codeText(&e.Workflow)
	if sameKey {
		e.Key = key
	} else {
		codeTextOf(c, &e.Key)
	}
	c.codeExecution(e, random, named)
	at := strings.LastIndexByte(e.Holder, '/') + 1
	process, session := e.Holder[:at], e.Holder[at:]
	c.codeText(&process)
	c.codeText(&session)
	e.Holder = process + session
	c.codeText(&e.Route)
	c.codeText(&e.EventID)
	if labelled {
		c.codeLabels(&e.Labels)
	}
	if printed {
		c.codeLiteral(e.Fingerprint[:])
	}
	if parted {
		c.codeLiteral(e.Parts[:])
	}
	c.codeText(&e.Credentials)
	c.codeText(&e.CallbackHash)
	c.codeTrace(&e.TraceParent)
	c.codeInt(&e.Attempt)
	c.codeMicros(&e.StartedAt, epoch)
	c.codeNumber(&e.Token)
	c.codeDuration(&e.Retention)
	if rare {
		c.codeJSON(&e.Earlier, &e.Order, &e.Stale, &e.Steps, &e.Slots)
	}
}

func (c *codec) codeLabels(labels *idem.Labels) {
	n := len(*labels)
	if c.codeInt(&n); c.reads {
		if n < 0 || n > len(c.data)/2 {
			c.fail(errShort)
			return
		}
		*labels = make(idem.Labels, n)
	}
	for i := range *labels {
		c.codeText(&(*labels)[i].Name)
		c.codeText(&(*labels)[i].Value)
	}
}

// codeExecution codes the ID of e: its random part if it is made of the workflow and the key, else
// the whole.
func (c *codec) codeExecution(e *idem.ExecutionFacts, random [4]byte, named bool) {
	if !named {
		codeTextOf(c, &e.Execution)
		return
	}
	if c.codeLiteral(random[:]); c.reads {
		e.Execution = idem.NewExecutionID(e.Workflow, e.Key, random)
	}
}
