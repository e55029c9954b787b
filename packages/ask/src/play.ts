/** Plays clusters on virtual time. This entry point loads the embedded cluster. */
export { runCase } from './cases/run.ts'
export { replay } from './trace/replay.ts'
export { defaultPlayTimes, Play } from './play/play.ts'
export { playSnapshot } from './play/play-snapshot.ts'
