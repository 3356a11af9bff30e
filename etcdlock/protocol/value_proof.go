package protocol

import (
	"time"

	"hooklock/idem"
)

const proofVersion = 1

// Proof is how an execution ends whose service has answered whole, as its process knew before etcd
// did. In the file of a dead process it proves that.
type Proof struct {
	Execution idem.ExecutionID // the one that ended
	End       idem.End         // without its Answer and Tried
	Status    int              // of the service's answer
	Bytes     int64            // of the answer's body, which is not here
	Counts    []idem.Counted   // what its end adds to the counts of its route
}

// EncodeProof encodes a proof.
func EncodeProof(p *Proof) ([]byte, error) {
	c := &codec{data: append(make([]byte, 0, 128), proofVersion)}
	c.codeProof(p)
	return c.data, c.err
}

// DecodeProof reads a proof.
func DecodeProof(b []byte) (*Proof, error) {
	c, p := newReader("a proof", b, proofVersion), &Proof{}
	if c.codeProof(p); c.err != nil {
		return nil, c.err
	}
	return p, nil
}

func (c *codec) codeProof(p *Proof) {
	end := &p.End
	rare := end.Error != nil || end.Abort != nil || end.Asked != nil || !end.ProvenAt.IsZero()
	c.codeFlags(&end.Remembered, &end.RequestKept, &rare)
	c.codeText((*string)(&p.Execution))
	codeWord(c, &end.Status, []idem.Status{idem.Success, idem.Failed, idem.Aborted})
	codeWord(c, &end.Outcome, []idem.Outcome{idem.Executed, idem.NotExecuted, idem.Unknown})
	c.codeTime(&end.FinishedAt, epoch)
	if rare {
		c.codeJSON(&end.Error, &end.Abort, &end.Asked, &end.ProvenAt)
	}
	c.codeInt(&p.Status)
	c.codeNumber(&p.Bytes)
	all := codeEach(c, p.Counts)
	for i := range all {
		c.codeCounted(&all[i])
	}
	p.Counts = all
}

func (c *codec) codeCounted(one *idem.Counted) {
	kinds := uint64(one.Kinds)
	c.codeText(&one.Route)
	c.codeUint(&kinds)
	c.codeDuration(&one.Took)
	c.codeTime(&one.Last, time.Time{})
	one.Kinds = idem.CountSet(kinds) //nolint:gosec // of a newer release, it has kinds that no one counts
}
