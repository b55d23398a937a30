module peer

go 1.19

require (
	github.com/golang-jwt/jwt/v4 v4.4.3
	github.com/mattn/go-sqlite3 v1.14.16
)
