/** Runs the Node candidate named on the command line, as a process of its own. */
const [name] = process.argv.slice(2)
const { start } = await import(`../candidates/${name}.js`)
await start(JSON.parse(process.env.LOST_BENCH))
