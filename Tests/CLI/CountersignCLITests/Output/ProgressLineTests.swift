import CountersignCore
import Foundation
import Testing

@testable import CountersignCLI

struct ProgressLineTests {
    /// Recorded output, with a clock that the test sets.
    private final class Drawn: Sendable {
        let text = Lock("")
        let time = Lock(Date(timeIntervalSince1970: 0))

        func line(total: Int = 0, isInteractive: Bool = true, width: Int? = nil) -> ProgressLine {
            var io = CommandIO(
                output: { _ in }, talk: { [text] talk in text.withLock { $0 += talk } }, input: { [] },
                environment: [:], isInteractive: isInteractive)
            io.messageWidth = width
            return ProgressLine(total: total, io: io) { [time] in time.withLock { $0 } }
        }

        func wait(_ seconds: Double) { time.withLock { $0 += seconds } }

        var taken: String {
            text.withLock { text in
                defer { text = "" }
                return text
            }
        }
    }

    @Test func aLineIsRedrawnAtMostTenTimesASecond() {
        let drawn = Drawn()
        let line = drawn.line()
        line.show("one")
        line.show("two")
        #expect(drawn.taken == "\r\u{1B}[Kone")
        drawn.wait(0.11)
        line.show("three")
        #expect(drawn.taken == "\r\u{1B}[Kthree")
        line.show("four", always: true)
        #expect(drawn.taken == "\r\u{1B}[Kfour")
    }

    @Test func aLineFitsTheTerminal() {
        let drawn = Drawn()
        drawn.line(width: 4).show("one two")
        #expect(drawn.taken == "\r\u{1B}[Kone")
        drawn.line(width: 6).show("商店 shop")
        #expect(drawn.taken == "\r\u{1B}[K商店 ")
        drawn.line(total: 100, width: 40).show(100)
        #expect(drawn.taken == "\r\u{1B}[K100 of 100  100000/s  0 s left")
    }

    @Test func aBarEndsFull() {
        let drawn = Drawn()
        let line = drawn.line(total: 100)
        line.show(50)
        #expect(drawn.taken.contains("50 of 100"))
        line.show(100)
        #expect(drawn.taken.contains(String(repeating: "█", count: 24) + " 100 of 100"))
    }

    @Test func theProgressLineIsErasedOnce() {
        let drawn = Drawn()
        let line = drawn.line()
        line.clear()
        #expect(drawn.taken == "")
        line.show("one")
        _ = drawn.taken
        line.clear()
        line.clear()
        #expect(drawn.taken == "\r\u{1B}[K")
    }

    @Test func withoutATerminalNoLineIsDrawn() {
        let drawn = Drawn()
        let line = drawn.line(total: 2, isInteractive: false)
        line.show("one")
        line.show(2)
        line.clear()
        line.end()
        #expect(drawn.taken == "")
        line.say("two")
        #expect(drawn.taken == "two\n")
    }

    @Test(arguments: [true, false])
    func aBackupShowsProgressOnATerminal(isInteractive: Bool) async throws {
        let folder = TemporaryFolder()
        let data = folder.path + "/data"
        #expect(await RecordedIO().run("app", "create", "shop", "--data", data) == .done)
        let made = RecordedIO(isInteractive: isInteractive)
        #expect(
            await made.run("backup", "create", "--data", data, "--to", folder.path + "/copies", "--json")
                == .done)
        #expect(made.talk.contains("\r\u{1B}[KCopying control.sqlite, ") == isInteractive)
        #expect(made.talk.contains("\u{1B}") == isInteractive)
        #expect(made.talk.contains("Copied and verified. Events: 0, bytes: "))
        #expect(JSONValue(parsing: Array(made.output.utf8)) != nil)
    }
}
