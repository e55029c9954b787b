/**
 * How much a single object can slow a decision down: pods as complex as the API server accepts, compared with
 * plain ones.
 *
 *   node bench/worst-cases.ts [--pods N] [--runs N] [--only WORDS] [--json]
 *
 * `msPerPod` is the CPU time of a decision per pod, the minimum of all runs, and `timesPlain` its ratio to that
 * of a plain pod.
 */
import { schedule } from '@tenon/engine'
import { worstCase, worstCases } from '../packages/engine/src/testing/worst-cases.test-support.ts'
import { benchArguments } from './arguments.ts'

const values = benchArguments('worst-cases', 'Times decisions about pods that say very much.', {
  pods: { type: 'string', default: '100', help: 'pods of a decision, all of one kind' },
  runs: { type: 'string', default: '3', help: 'decisions of each kind' },
  only: { type: 'string', default: '', help: 'kinds with these words in their names' },
  json: { type: 'boolean', help: 'prints the figures as JSON' },
})
const [pods, runs] = [Number(values.pods), Number(values.runs)]
if (!(pods > 0 && runs > 0)) {
  console.error('worst-cases: --pods and --runs take positive numbers')
  process.exit(2)
}

function msPerPod(name: string): number {
  const input = worstCase(name, pods)
  const times = Array.from({ length: runs }, () => {
    const start = process.threadCpuUsage()
    schedule(input)
    const { user, system } = process.threadCpuUsage(start)
    return (user + system) / 1000
  })
  return Math.min(...times) / pods
}

const plain = msPerPod('plain')
const rounded = (value: number) => Number(value.toPrecision(3))
const rows = Object.keys(worstCases)
  .filter((name) => name.includes(values.only))
  .map((name) => {
    const ms = name === 'plain' ? plain : msPerPod(name)
    return { name, msPerPod: rounded(ms), timesPlain: rounded(ms / plain) }
  })
if (values.json) console.log(JSON.stringify(rows))
else console.table(rows)
