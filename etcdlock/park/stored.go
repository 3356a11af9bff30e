package park

import (
	"context"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

// Stored returns what is stored of the parked execution of l besides l itself, with the lease of its age. It returns the error of the grant or of ctx.
func Stored(ctx context.Context, leases *commit.Leases, l *idem.Lock, kept *idem.Kept) (p protocol.Parking, err error) {
	p.Request.Value = kept.Value
	p.Index.Value = protocol.EncodeIndex(protocol.IndexOf(l))
	p.Age, err = leases.Notice(ctx, l.Parked.MaxAge)
	return p, err
}
