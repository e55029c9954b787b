/** How long frames of the viewer take, without a terminal. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { ask } from './asked.ts'
import { type Figure, heldTarget, part, type Stand } from './figure.ts'
import type { Look, Seen } from './viewer-process.ts'

export async function framed({ churn, kubeconfig, seconds }: Stand): Promise<readonly Figure[]> {
  const viewer = fork(new URL('viewer-process.ts', import.meta.url), [kubeconfig])
  try {
    const [first] = (await once(viewer, 'message')) as [Seen]
    if (first.kind !== 'filled') throw new Error(`the viewer answered ${first.kind}`)
    const changed = churn()
    const looked = await ask<Seen>(viewer, { seconds } satisfies Look)
    await changed
    if (looked.kind !== 'looked') throw new Error(`the viewer answered ${looked.kind}`)
    return [
      { name: 'view held while filling ms', value: first.heldMs, target: heldTarget },
      { name: 'view frame p50 ms', value: part(looked.frameMs, 0.5), target: heldTarget },
      { name: 'view frame p99 ms', value: part(looked.frameMs, 0.99), target: heldTarget },
      { name: 'view held ms', value: looked.heldMs, target: heldTarget },
    ]
  } finally {
    viewer.disconnect()
    await once(viewer, 'exit')
  }
}
