/** The viewer in a pseudo-terminal, with a simulated user. */
import { spawn } from '@lydell/node-pty'
import xterm from '@xterm/headless'
import { bundledMain } from '../control-plane/controller-process.ts'
import { cpuMs, type Figure, heldTarget, part, peakMiB, type Stand } from './figure.ts'

const [columns, rows] = [200, 50]
const keyEveryMs = 137
const shareTarget = 10
const memoryTarget = 400
/** Excludes warm-up and garbage of the fill from the measurement. */
const settleMs = 3000
const fillWithinMs = 300_000

export async function viewed({
  churn,
  clock,
  controllerUrl,
  kubeconfig,
  seconds,
  size,
}: Stand): Promise<readonly Figure[]> {
  const terminal = new xterm.Terminal({ cols: columns, rows, allowProposedApi: true })
  const args = ['view', '--kubeconfig', kubeconfig, '--controller', controllerUrl]
  const startMs = clock.monotonic()
  const pty = spawn(process.execPath, [bundledMain(), ...args], {
    cols: columns,
    rows,
    name: 'xterm-256color',
    env: { PATH: process.env['PATH'], HOME: '/nonexistent', TERM: 'xterm-256color' },
  })
  let onScreen: () => void = () => undefined
  pty.onData((data) => {
    terminal.write(data, () => onScreen())
  })
  const lines = () =>
    Array.from({ length: rows }, (_, at) => terminal.buffer.active.getLine(at)?.translateToString(true) ?? '')
  const until = (isSo: (text: string) => boolean, withinMs: number) =>
    new Promise<void>((resolve, reject) => {
      const cancel = clock.after(withinMs, () => {
        reject(new Error(`the screen does not come to it:\n${lines().join('\n')}`))
      })
      onScreen = () => {
        if (!isSo(lines().join('\n'))) return
        cancel()
        onScreen = () => undefined
        resolve()
      }
      onScreen()
    })
  try {
    const { nodes, pods } = size
    await until((text) => text.includes(`${nodes} nodes`) && text.includes(`${pods} pods:`), fillWithinMs)
    const fillMs = clock.monotonic() - startMs
    await clock.sleep(settleMs)
    const changed = churn()
    await clock.sleep(1000)
    const [before, cpu] = [clock.monotonic(), cpuMs(pty.pid)]
    await clock.sleep(seconds * 500)
    const watched = (100 * (cpuMs(pty.pid) - cpu)) / (clock.monotonic() - before)
    const keyMs: number[] = []
    const selected = () => lines().find((line) => line.startsWith('>')) ?? ''
    for (let at = 0; clock.monotonic() - before < seconds * 1000; at++) {
      const was = selected()
      const pressedMs = clock.monotonic()
      const answered = until(() => selected() !== was, 30_000)
      pty.write(at % 10 === 9 ? 'k' : 'j')
      await answered
      keyMs.push(clock.monotonic() - pressedMs)
      await clock.sleep(keyEveryMs)
    }
    await changed
    return [
      { name: 'view fill ms', value: fillMs },
      { name: 'view key p50 ms', value: part(keyMs, 0.5), target: heldTarget },
      { name: 'view key p99 ms', value: part(keyMs, 0.99), target: heldTarget },
      { name: 'view core %', value: watched, target: shareTarget },
      { name: 'view memory MiB', value: peakMiB(pty.pid), target: memoryTarget },
    ]
  } finally {
    pty.kill('SIGKILL')
    terminal.dispose()
  }
}
