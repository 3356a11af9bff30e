// Package quickstart does what docs/quickstart-php-java-rails.md says, with the services for real.
package quickstart
