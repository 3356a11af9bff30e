// Package owned keeps the locks that this process holds: it settles, releases, holds, parks and
// hands them off, and moves them from session to session.
package owned
