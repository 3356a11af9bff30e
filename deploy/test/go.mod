module hooklock/deploy/test

go 1.26.0

require (
	go.uber.org/goleak v1.3.0
	hooklock v0.0.0
)

replace hooklock => ../..
