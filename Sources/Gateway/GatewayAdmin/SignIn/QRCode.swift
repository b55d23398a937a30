internal import CQREncode

/// Encodes text as a QR code (ISO/IEC 18004).
enum QRCode {
    /// The modules, row by row; `1` is dark. No quiet zone. Nil if the text is too long or memory is short.
    static func rows(_ text: String) -> [String]? {
        guard let code = QRcode_encodeString8bit(text, 0, QR_ECLEVEL_M) else { return nil }
        defer { QRcode_free(code) }
        let width = Int(code.pointee.width)
        guard let modules = code.pointee.data else { return nil }
        return (0..<width).map { row in
            String(
                decoding: (0..<width).map { modules[row * width + $0] & 1 == 1 ? 0x31 : 0x30 }, as: UTF8.self)
        }
    }
}
