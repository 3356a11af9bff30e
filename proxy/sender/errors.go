package sender

// Reason is why a signature is not accepted.
type Reason string

// The reasons.
const (
	Missing   Reason = "missing"   // what the scheme needs is not in the delivery
	Malformed Reason = "malformed" // it is there and cannot be read, or could be read in two ways
	Mismatch  Reason = "mismatch"  // it was read, and no configured secret or key made it
	TooOld    Reason = "too_old"   // the signature is right, its timestamp is older than the tolerance
	TooNew    Reason = "too_new"   // the signature is right, its timestamp is further ahead than the tolerance
)

// SignatureError is the one error that Verify returns. Its text may go into logs and to people: it holds no secret, no
// signature and nothing of the body.
type SignatureError struct {
	Scheme string
	Reason Reason
	// Part is what the reason is about: a header's name, or a member of the body as a template would write it.
	Part string
	// Detail says to a person what was found and what to look at.
	Detail string
}

// Error is the reason, the part and the detail.
func (e *SignatureError) Error() string {
	return "verify " + e.Scheme + " signature: " + string(e.Reason) + ": " + e.Part + ": " + e.Detail
}
