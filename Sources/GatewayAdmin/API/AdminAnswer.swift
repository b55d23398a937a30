/// What all answers of the admin API have in common.
enum AdminAnswer {
    static let headers = [
        ("Cache-Control", "no-store, no-transform"), ("X-Content-Type-Options", "nosniff"),
        ("Referrer-Policy", "no-referrer"),
    ]
}
