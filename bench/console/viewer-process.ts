/** The terminal viewer without a visible terminal: how long frames take, and how long it is blocked. */
import { monitorEventLoopDelay } from 'node:perf_hooks'
import {
  ConsoleModel,
  followCluster,
  keepYoungSpaceSmall,
  paintWith,
  type Terminal,
  Viewer,
} from '@tenon/console'
import { loadKubeConfig } from '@tenon/kube'
import { SystemClock } from '@tenon/runtime'

/** A request of the parent to measure for some time. */
export interface Look {
  readonly seconds: number
}

/** Times in milliseconds. */
export type Seen =
  | { readonly kind: 'filled'; readonly heldMs: number }
  | {
      readonly kind: 'looked'
      /** Time to build and write a frame after a change. */
      readonly frameMs: readonly number[]
      readonly heldMs: number
    }

const [kubeconfig = ''] = process.argv.slice(2)
// As in `tenon view`.
keepYoungSpaceSmall()
const clock = new SystemClock()
const ended = new AbortController()
const resolutionMs = 5
const delay = monitorEventLoopDelay({ resolution: resolutionMs })
let frames: number[] = []
let beganMs = 0

const terminal: Terminal = {
  size: () => {
    beganMs = performance.now()
    return { columns: 200, rows: 50 }
  },
  write: () => {
    frames.push(performance.now() - beganMs)
  },
  open: () => () => undefined,
}

const model = new ConsoleModel()
const viewer = new Viewer(
  model,
  {
    explain: () => Promise.resolve([]),
    yaml: () => Promise.resolve([]),
    act: () => Promise.resolve(''),
    commandOf: () => '',
  },
  {
    paint: paintWith('256'),
    matcher: () => () => true,
    resources: ['cpu', 'memory'],
    extraLabels: [],
    hasPricing: true,
    sorting: { by: 'age', isReversed: true },
    readOnly: undefined,
    source: '',
  },
  clock,
)

delay.enable()
followCluster(
  {
    transport: loadKubeConfig({ env: {}, kubeconfig }).transport,
    clock,
    emit: (event) => {
      model.apply(event)
      viewer.modelChanged()
    },
  },
  ended.signal,
)
for (const what of ['journal', 'decisions']) model.apply({ kind: 'absent', what, why: 'nobody tells' })
const running = viewer.run(terminal, ended.signal)
while (!model.isFilled) await clock.sleep(10)
emit({ kind: 'filled', heldMs: longestHoldMs() })

process.on('message', ({ seconds }: Look) => void look(seconds).then(emit))
process.on('disconnect', () => {
  ended.abort()
  void running.then(() => process.exit(0))
})

async function look(seconds: number): Promise<Seen> {
  // Excludes warm-up and garbage of the fill.
  await clock.sleep(2000)
  longestHoldMs()
  frames = []
  await clock.sleep(seconds * 1000)
  return { kind: 'looked', frameMs: frames, heldMs: longestHoldMs() }
}

/** Since the last call. */
function longestHoldMs(): number {
  const heldMs = Math.max(0, delay.max / 1e6 - resolutionMs)
  delay.reset()
  return heldMs
}

function emit(seen: Seen): void {
  process.send?.(seen)
}
