internal import Foundation
internal import GatewayModel

extension Doctor {
    /// One finding for each listener; empty if the settings are invalid or the system chooses the ports.
    var ports: [Finding] {
        guard settingsProblem == nil else { return [] }
        var addresses = [(name: "port", host: configuration.host, port: configuration.port)]
        if let host = configuration.adminHost {
            addresses.append(("admin-port", host, configuration.adminPort))
        }
        return addresses.filter { $0.port != 0 }.map { Self.port($0.name, $0.host, $0.port) }
    }

    private static func port(_ name: String, _ host: String, _ port: UInt16) -> Finding {
        let address = "\(host.contains(":") ? "[\(host)]" : host):\(port)"
        switch bindError(host, port) {
        case 0: return .ok(name, "\(address) is free")
        case EADDRINUSE:
            return .failed(
                name, "another process listens on \(address)",
                "ss -ltnp shows which; stop it, or give the gateway another port with the setting \(name)")
        case EACCES:
            return .failed(
                name, "this account may not listen on \(address)",
                "take a port from 1024 up behind a proxy, or give the service CAP_NET_BIND_SERVICE")
        case let error:
            return .failed(
                name, "cannot listen on \(address): \(String(cString: strerror(error)))",
                "is it an address of this machine?")
        }
    }

    /// The `errno` of binding the address; 0 on success.
    private static func bindError(_ host: String, _ port: UInt16) -> Int32 {
        var hints = addrinfo()
        hints.ai_flags = AI_NUMERICHOST | AI_PASSIVE
        #if canImport(Darwin)
            hints.ai_socktype = SOCK_STREAM
        #else
            hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        #endif
        var list: UnsafeMutablePointer<addrinfo>?
        guard getaddrinfo(host, String(port), &hints, &list) == 0, let address = list?.pointee else {
            return EADDRNOTAVAIL
        }
        defer { freeaddrinfo(list) }
        let descriptor = socket(address.ai_family, address.ai_socktype, 0)
        guard descriptor >= 0 else { return errno }
        defer { close(descriptor) }
        // The gateway's listener also sets these options. The first ignores connections in TIME_WAIT.
        var yes: Int32 = 1
        let size = socklen_t(MemoryLayout<Int32>.size)
        setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, size)
        if address.ai_family == AF_INET6 {
            setsockopt(descriptor, Int32(IPPROTO_IPV6), IPV6_V6ONLY, &yes, size)
        }
        return bind(descriptor, address.ai_addr, address.ai_addrlen) == 0 ? 0 : errno
    }
}
