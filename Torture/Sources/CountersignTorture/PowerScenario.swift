internal import Foundation

/// A preloaded model of a disk that loses each write that was not flushed. D4, D5 and I4 run devices with it.
enum PowerModel {
    /// Compiles the model. Returns its path.
    static func library(in directory: URL) throws -> String {
        try Library.build("Torture/Faults/powerfail.c", in: directory)
    }
}

/// Compiles libraries for `LD_PRELOAD`.
enum Library {
    static func build(_ source: String, in directory: URL) throws -> String {
        let name = URL(fileURLWithPath: source).deletingPathExtension().lastPathComponent
        let library = directory.appendingPathComponent("\(name).so").path
        let compiler = Process()
        compiler.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        compiler.arguments = ["cc", "-O2", "-shared", "-fPIC", "-o", library, source, "-ldl"]
        try compiler.run()
        compiler.waitUntilExit()
        guard compiler.terminationStatus == 0 else { throw TortureError("\(source) does not compile") }
        return library
    }
}

/// D4: the power fails while a device records. The device restarts from the durable state of the disk.
enum PowerScenario {
    static func run(rounds: Int) async throws -> Bool {
        let workshop = try Workshop()
        let library = try PowerModel.library(in: workshop.directory)
        var rolledBack = 0
        for round in 0..<rounds {
            let disk = workshop.directory.appendingPathComponent("disk-\(round)")
            let image = workshop.directory.appendingPathComponent("image-\(round)")
            for folder in [disk, image] {
                try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            }
            let device = try workshop.startDevice(
                "\(round)", count: 1_000_000, in: disk, online: false,
                environment: ["LD_PRELOAD": library, "PF_DIR": disk.path, "PF_IMG": image.path])
            try await Task.sleep(nanoseconds: UInt64.random(in: 10_000_000...300_000_000, using: &dice))
            workshop.kill(device)
            if FileManager.default.fileExists(
                atPath: image.appendingPathComponent("default/queue.sqlite-journal").path)
            {
                rolledBack += 1
            }
            // The image may lack the stored token. The draining device sets its token again.
            try workshop.drain(image)
        }
        let lost = try control(workshop, library: library)
        return try workshop.account(
            "D4",
            "\(rounds) power failures, \(rolledBack) with a hot journal, control (WAL, NORMAL) lost \(lost)",
            isGood: lost > 0)
    }

    /// The number of rows that a database without durable commits loses in this model.
    private static func control(_ workshop: Workshop, library: String) throws -> Int {
        let disk = workshop.directory.appendingPathComponent("control-disk")
        let image = workshop.directory.appendingPathComponent("control-image")
        for folder in [disk, image] {
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        }
        let journal = workshop.directory.appendingPathComponent("control-journal").path
        let process = try workshop.start(
            ["control", disk.appendingPathComponent("rows.sqlite").path, journal, "1000000"],
            environment: ["LD_PRELOAD": library, "PF_DIR": disk.path, "PF_IMG": image.path])
        // Waits for some rows, because a machine may be slow.
        while try Journal.read(journal).count < 10, process.isRunning { usleep(10_000) }
        workshop.kill(process)
        let written = try Journal.read(journal).count
        let path = image.appendingPathComponent("rows.sqlite").path
        // Without any flush, the image has not even the file.
        guard FileManager.default.fileExists(atPath: path) else { return written }
        let kept = try? Database(path: path).rows("SELECT count(*) FROM row").first.flatMap { Int($0[0]) }
        return written - (kept ?? 0)
    }
}

/// D5: fsync fails at a random call: once, up to 20 times, or from then on.
enum FsyncScenario {
    static func run(rounds: Int) async throws -> Bool {
        let workshop = try Workshop()
        let library = try PowerModel.library(in: workshop.directory)
        for round in 0..<rounds {
            let disk = workshop.directory.appendingPathComponent("disk-\(round)")
            let image = workshop.directory.appendingPathComponent("image-\(round)")
            for folder in [disk, image] {
                try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            }
            let device = try workshop.startDevice(
                "\(round)", count: 30, in: disk, online: false,
                environment: [
                    "LD_PRELOAD": library, "PF_DIR": disk.path, "PF_IMG": image.path,
                    "PF_FAIL_AFTER": "\(Int.random(in: 1...120, using: &dice))",
                    "PF_FAIL_COUNT": "\([1, Int.random(in: 2...20, using: &dice), Int.max][round % 3])",
                ])
            device.waitUntilExit()
            try workshop.drain(image)
        }
        return try workshop.account("D5", "\(rounds) devices with a failing fsync")
    }
}
