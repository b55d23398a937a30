import CountersignSQLite
import GatewayModel
import GatewayStorage
import Testing

struct StorageErrorTests {
    @Test func aFullDiskIsReportedWithAReason() throws {
        func reason(_ code: Int32, _ message: String) -> String? {
            #expect(throws: GatewayError.self) {
                try GatewayError.storing {
                    throw SQLiteError(
                        extendedCode: code, message: message, sql: "INSERT INTO app (id) VALUES (?)")
                }
            }?.reason
        }
        #expect(
            reason(13, "database or disk is full")
                == "the disk is full; make room, then try again")
        #expect(reason(11, "malformed")?.contains("malformed in: INSERT INTO app") == true)
    }
}
