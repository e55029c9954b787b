/** Whether exactly one controller serves each NodePool, where controllers share the cluster by `--node-pools`. */
import { karpenterKinds } from '@tenon/api'
import { nodePoolSelector, selectionProblem } from '../../../source/node-pool-selectors.ts'
import type { RunningAutoscaler } from '../../../source/autoscalers.ts'
import type { Check, Finding } from '../check.ts'

export const nodePoolSelectors: Check = {
  name: 'node-pools',
  run: async ({ kube, autoscalers }, signal) => {
    if (autoscalers instanceof Error) throw autoscalers
    const controllers = autoscalers.flatMap((each) => {
      const text = selectorOf(each)
      const name = `${each.namespace}/${each.name}`
      return text === '' ? [] : [{ name, text, selector: nodePoolSelector(`Deployment ${name}`, text) }]
    })
    if (controllers.length === 0) return { summary: 'one controller serves all NodePools', findings: [] }
    const pools = await kube.list(karpenterKinds.nodePool, { signal })
    const findings = pools.flatMap((pool): readonly Finding[] => {
      const problem = selectionProblem(pool, controllers)
      return problem === undefined
        ? []
        : [
            {
              status: 'warn',
              message: `NodePool ${pool.metadata.name}: ${problem}`,
              fix: 'change its labels, or --node-pools of a controller, so that one selects it',
            },
          ]
    })
    return { summary: `${controllers.length} controllers share ${pools.length} NodePools`, findings }
  },
}

/** Empty for a controller that serves all NodePools. */
export function selectorOf(autoscaler: RunningAutoscaler | undefined): string {
  return autoscaler?.kind === 'tenon' ? autoscaler.setting('node-pools', 'NODE_POOLS') : ''
}
