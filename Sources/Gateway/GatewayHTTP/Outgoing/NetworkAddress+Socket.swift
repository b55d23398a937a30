internal import Foundation
internal import GatewayModel

extension NetworkAddress {
    init?(_ address: UnsafePointer<sockaddr>, length: Int) {
        var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN) + 1)
        let raw = UnsafeRawPointer(address)
        switch Int32(address.pointee.sa_family) {
        case AF_INET where length >= MemoryLayout<sockaddr_in>.size:
            var v4 = raw.loadUnaligned(as: sockaddr_in.self).sin_addr
            guard inet_ntop(AF_INET, &v4, &text, socklen_t(text.count)) != nil else { return nil }
        case AF_INET6 where length >= MemoryLayout<sockaddr_in6>.size:
            var v6 = raw.loadUnaligned(as: sockaddr_in6.self).sin6_addr
            guard inet_ntop(AF_INET6, &v6, &text, socklen_t(text.count)) != nil else { return nil }
        default: return nil
        }
        self.init(String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self))
    }

    static func port(_ address: UnsafePointer<sockaddr>, length: Int) -> UInt16 {
        let raw = UnsafeRawPointer(address)
        switch Int32(address.pointee.sa_family) {
        case AF_INET where length >= MemoryLayout<sockaddr_in>.size:
            return UInt16(bigEndian: raw.loadUnaligned(as: sockaddr_in.self).sin_port)
        case AF_INET6 where length >= MemoryLayout<sockaddr_in6>.size:
            return UInt16(bigEndian: raw.loadUnaligned(as: sockaddr_in6.self).sin6_port)
        default: return 0
        }
    }
}
