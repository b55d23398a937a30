@main struct CountersignCommand { static func main() {} }
