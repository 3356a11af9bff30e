// Package quickstart follows README.md, docs/first-route.md and docs/quickstart-php-java-rails.md,
// with real services.
package quickstart
