package commit

import (
	"fmt"

	"hooklock/etcdlock/link"
	"hooklock/idem"
)

// Unavailable returns an idem.ErrStoreUnavailable that says why.
func Unavailable(why error) error {
	return fmt.Errorf("%w: %w", idem.ErrStoreUnavailable, link.Explain(why))
}

// Unknown returns an idem.ErrNotRecorded that says why it is not known what became of a request.
func Unknown(why error) error { return fmt.Errorf("%w: %w", idem.ErrNotRecorded, link.Explain(why)) }
