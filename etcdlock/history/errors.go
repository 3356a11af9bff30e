package history

import (
	"fmt"

	"hooklock/etcdlock/link"
	"hooklock/idem"
)

// unavailable returns an idem.ErrStoreUnavailable that says why.
func unavailable(why error) error {
	return fmt.Errorf("%w: %w", idem.ErrStoreUnavailable, link.Explain(why))
}
