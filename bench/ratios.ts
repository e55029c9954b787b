/**
 * How much faster decisions about diverse pods are than those of the reference (SCA-17): 60, 300, 1,000 and 10,000 pods,
 * first fit and planned, in a process that has decided nothing yet and in one that is warm. Each is measured in a process
 * of its own, and the rounds take turns, so that what else the host does hits all alike.
 *
 *   npm run bench:ratios -- [--pods 60,300,…] [--rounds N] [--json]
 *
 * The last lines are a table for bench/README.md, with medians of the rounds.
 */
import { fileURLToPath } from 'node:url'
import { benchArguments } from './arguments.ts'
import { measuredElsewhere } from './own-process.ts'
import { type Ages, measureAges, median, ratioTable } from './scheduling/ratios.ts'

const values = benchArguments('ratios', 'How much faster decisions are than those of the reference.', {
  pods: {
    type: 'string',
    default: '60,300,1000,10000',
    help: 'pods of a decision, several separated by commas',
  },
  rounds: { type: 'string', default: '5', help: 'processes for each row' },
  json: { type: 'boolean', help: 'prints the figures as JSON' },
  child: { type: 'string', help: 'measures one row in this process, for the others' },
})

const improvements = ['none', 'planned'] as const
const runsOf = (pods: number) => (pods >= 10_000 ? 5 : 40)

if (values.child !== undefined) {
  const [pods, improvement] = values.child.split(' ')
  process.send?.(
    measureAges(Number(pods), improvement === 'planned' ? improvement : 'none', runsOf(Number(pods))),
  )
} else await main()

async function main(): Promise<void> {
  const sizes = values.pods.split(',').map(Number)
  const rounds = Number(values.rounds)
  if (![rounds, ...sizes].every((each) => each >= 1)) {
    console.error('ratios: --pods takes numbers separated by commas, --rounds a number')
    process.exit(2)
  }
  const rows = sizes.flatMap((pods) =>
    improvements.map((improvement) => ({ pods, improvement, all: [] as Ages[] })),
  )
  for (let round = 0; round < rounds; round++)
    for (const { pods, improvement, all } of rows) {
      const args = [`--child=${pods} ${improvement}`]
      const { measured } = await measuredElsewhere(`${pods} pods`, fileURLToPath(import.meta.url), args)
      all.push(measured as Ages)
    }
  const medians = rows.map(({ pods, improvement, all }) => ({
    pods,
    improvement,
    youngMs: median(all.map(({ youngMs }) => youngMs)),
    warmMs: median(all.map(({ warmMs }) => warmMs)),
  }))
  for (const line of values.json ? medians.map((row) => JSON.stringify(row)) : ratioTable(medians))
    console.log(line)
}
