package history

import (
	"context"
	"maps"
	"strings"
	"time"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/link"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

const (
	// signaturesASecond bounds the bad signatures that this process lists in a second.
	signaturesASecond = 5
	// signaturesAtOnce of one route are listed at once, and then one in signatureEvery: a flood
	// does not displace those of the weeks before.
	signaturesAtOnce = 10
	signatureEvery   = time.Minute
	// maxSignaturesRead bounds what one page looks at, whatever it shows.
	maxSignaturesRead = 5000
)

// Signatures lists deliveries whose signature was not valid: anyone can send these, as many as they
// like. So a few of each second are listed, and the rest is counted in the newest that is.
type Signatures struct {
	*writer
	Bounds

	// The fields below are guarded by the writer's mu.
	numbered int64
	second   int64                    // the current one
	listed   int                      // in it
	routes   map[string]*routeListing // by name
}

// routeListing is what was listed of a route.
type routeListing struct {
	room   float64   // how many more may be listed at that time
	at     time.Time // of the newest
	newest *signature
}

// roomAt returns how many may be listed now.
func (r *routeListing) roomAt(now time.Time) float64 {
	return min(signaturesAtOnce, r.room+max(0, now.Sub(r.at).Seconds())/signatureEvery.Seconds())
}

// signature is one that is listed. It may change.
type signature struct {
	note
	idem.BadSignature
}

const (
	// maxBadSignatures is how many bad signatures of one route are kept: the newest.
	maxBadSignatures = 1000
	// maxBadSignaturesOfAll is how many are kept of all routes together.
	maxBadSignaturesOfAll = 20_000
)

// NewSignatures returns an empty list. Run writes it.
func NewSignatures(o *Options) *Signatures {
	s := &Signatures{
		writer: newWriter(o), Bounds: Bounds{Most: maxBadSignatures, MostOfAll: maxBadSignaturesOfAll},
		routes: map[string]*routeListing{},
	}
	s.after = func(ctx context.Context) error { return s.deleteExcess(ctx, s.options, protocol.KindSignatures) }
	return s
}

// NoteBadSignature lists a delivery, or counts it. It never blocks. Other replicas see it within a
// second, as long as etcd takes it, and for idem.BadSignatureRetention. eventID is called only if
// it is listed.
func (s *Signatures) NoteBadSignature(b idem.BadSignature, eventID func() string) {
	b.At = b.At.UTC().Round(time.Millisecond)
	one := s.reservePlace(&b)
	if one == nil {
		return
	}
	id := eventID()
	s.mu.Lock()
	defer s.mu.Unlock()
	one.EventID = id
	s.enqueueLocked(&one.note)
}

// reservePlace returns the place of b in the list; nil: it has none, and is counted.
func (s *Signatures) reservePlace(b *idem.BadSignature) *signature {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.options.Clock.Now()
	if s.second != now.Unix() {
		s.second, s.listed = now.Unix(), 0
	}
	r := s.routes[b.Route]
	if r == nil {
		s.dropQuietLocked(now)
		r = &routeListing{room: signaturesAtOnce}
		s.routes[b.Route] = r
	}
	r.room, r.at = r.roomAt(now), now
	if r.newest != nil && (r.room < 1 || s.listed >= signaturesASecond) {
		r.newest.More++
		r.newest.Until = b.At
		s.enqueueLocked(&r.newest.note)
		return nil
	}
	r.room--
	s.listed++
	s.numbered++
	key := s.options.Layout.BadSignature(b.At, s.options.Writer, s.numbered, b.Route)
	one := &signature{BadSignature: *b}
	one.retention = idem.BadSignatureRetention
	one.says = func() (string, []byte, *protocol.Row) {
		return key, protocol.EncodeBadSignature(&one.BadSignature), nil
	}
	r.newest = one
	return one
}

// dropQuietLocked forgets the routes that had none for as long as makes no difference.
func (s *Signatures) dropQuietLocked(now time.Time) {
	maps.DeleteFunc(s.routes, func(_ string, r *routeListing) bool { return r.roomAt(now) == signaturesAtOnce })
}

// List returns a page, the newest first. It returns idem.ErrCursor for an invalid cursor and
// idem.ErrStoreUnavailable if etcd cannot be read.
func (s *Signatures) List(ctx context.Context, q idem.BadSignatureQuery) (page idem.BadSignaturePage, err error) {
	after, ok := strings.CutPrefix(q.Cursor, protocol.KindSignatures)
	if q.Cursor != "" && !ok {
		return page, idem.ErrCursor
	}
	s.Finish(ctx) // what has just come is looked for
	keys := link.Below(s.options.Layout.All(protocol.KindSignatures), MaxPage)
	if after != "" {
		keys.From += after + "\x00"
	}
	limit, looked, last := pageLimit(q.PageSize), 0, ""
	for kv, err := range s.options.Pool.All(ctx, keys) {
		if err != nil {
			return idem.BadSignaturePage{}, commit.Unavailable(err)
		}
		if len(page.BadSignatures) == limit || looked == maxSignaturesRead {
			page.NextCursor = last
			return page, nil
		}
		looked, last = looked+1, strings.TrimPrefix(string(kv.Key), s.options.Layout.Root)
		if one := protocol.DecodeBadSignature(kv.Value); one != nil && q.Matches(one) {
			page.BadSignatures = append(page.BadSignatures, *one)
		}
	}
	return page, nil
}
