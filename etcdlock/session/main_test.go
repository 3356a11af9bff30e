package session

import (
	"testing"

	"go.uber.org/goleak"

	"hooklock/etcdlock/etcdtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = etcdtest.Patience

var within = etcdtest.Within
