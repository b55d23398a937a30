enum AdminAnswer {
    static let headers = [
        ("Cache-Control", "no-store, no-transform"), ("X-Content-Type-Options", "nosniff"),
        ("Referrer-Policy", "no-referrer"),
    ]
}
