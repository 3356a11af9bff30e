package requests

import "hooklock/proxy/kept"

// Request is the stored request of a delivery.
type Request = kept.Request

// ErrFormat is returned for bytes that are no request of this version. A newer release may have
// written them; nothing is guessed.
var ErrFormat = kept.ErrFormat

// maxKept is the most that a store has for one execution.
const maxKept = kept.Most + sealOverhead
