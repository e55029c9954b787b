/**
 * Where the pods of a mixed batch are placed on a real control plane, the price of their nodes, and the time:
 *
 *   node bench/placement.ts [--json] [--runs N] [--small-nodes] [--refused-first]
 *
 * Eight Deployments of 100 pods each, nodes simulated by kwok, default settings. The control plane is started
 * and stopped here, unless TENON_CONFORMANCE_DIR and TENON_CONFORMANCE_BIN name a running one. Time counts from
 * the first Deployment until every pod is Ready, CPU time is that of the operator's process.
 *
 *   --small-nodes    nodes of at most 16 CPU, so that there are many
 *   --refused-first  launches start only after the scheduler has rejected every pod, and time counts from
 *                    then on: one decision sees all pods, however slow the host
 */
import { Stand } from '../conformance/src/planned-placement/stand.ts'
import { eightShapes, smallNodes } from '../conformance/src/planned-placement/workloads.ts'
import { sharedControlPlane } from '../conformance/suite/cluster.ts'
import { benchArguments } from './arguments.ts'
import { jsonOf, tableOf } from './placement/table.ts'

const withinMs = 120_000

const values = benchArguments(
  'placement',
  'Where the pods of a mixed batch go on a real control plane, and what their nodes cost.',
  {
    json: { type: 'boolean', help: 'one JSON document for each run' },
    runs: { type: 'string', default: '1', help: 'how often it is played' },
    'small-nodes': { type: 'boolean', help: 'nodes of at most 16 CPU' },
    'refused-first': {
      type: 'boolean',
      help: 'nothing is launched before the scheduler has refused every pod',
    },
  },
)
const controlPlane = await sharedControlPlane()
try {
  for (let run = 0; run < Number(values.runs); run++) {
    const stand = await Stand.start(controlPlane.kubeconfigPath)
    try {
      const outcome = await stand.play(eightShapes, {
        ...(values['small-nodes'] && { requirements: smallNodes }),
        isRefusedFirst: values['refused-first'],
        withinMs,
      })
      process.stdout.write(values.json ? jsonOf(outcome) : tableOf(outcome))
      await stand.clear(eightShapes)
    } finally {
      await stand.stop()
    }
  }
} finally {
  await controlPlane.stop()
}
// Events of the last run may still be queued, and would be retried on a control plane that is gone.
process.exit()
