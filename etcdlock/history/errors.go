package history

import (
	"fmt"

	"hooklock/etcdlock/link"
	"hooklock/idem"
)

// unavailable says that etcd cannot answer, and why.
func unavailable(why error) error {
	return fmt.Errorf("%w: %w", idem.ErrStoreUnavailable, link.Explain(why))
}
