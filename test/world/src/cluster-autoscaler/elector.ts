/** A leader elector on virtual time; the command uses a thread instead. */
import type { AutoscalerPlan } from '@tenon/cluster-autoscaler'
import { createKubeClient, createLeaderElector } from '@tenon/kube'
import type { Transport } from '@tenon/runtime'

type Candidate = Pick<AutoscalerPlan, 'options' | 'process' | 'identity' | 'clock' | 'random' | 'logger'>

/** Implements {@link AutoscalerPlan.elect}; undefined with `--leader-elect=false`. */
export function electorOver(
  transport: Transport,
  { options, process, identity, clock, random, logger }: Candidate,
): Pick<AutoscalerPlan, 'elect'> {
  const { leaderElection, leaseName: name } = process
  if (leaderElection === undefined) return {}
  const client = createKubeClient({ transport, clock, userAgent: 'test', requestTimeoutMs: 5000 })
  const { namespace } = options.status
  return {
    elect: (hooks) =>
      createLeaderElector({
        ...leaderElection,
        ...hooks,
        client,
        clock,
        random,
        logger,
        identity,
        namespace,
        name,
        writes: 'update',
      }),
  }
}
