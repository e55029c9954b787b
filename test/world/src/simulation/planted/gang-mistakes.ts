/** Bugs of gangs. */
import type { KubeObject, PodGroup } from '@tenon/api'
import type { Operator } from '@tenon/operator'
import { oneChunk, type Transport } from '@tenon/runtime'
import { pluralOf } from './sight.ts'

/** Every gang seems to need one pod only. */
export const contentWithOne = (object: KubeObject): KubeObject => {
  const group = object as PodGroup
  if (group.spec?.schedulingPolicy?.gang == null) return object
  const spec = { ...group.spec, schedulingPolicy: { gang: { minCount: 1 } } }
  return { ...group, spec } as KubeObject
}

/** Lists of the pods of a node are empty. */
export function seesEveryNodeFree(inner: Transport): Transport {
  return {
    async send(request, signal) {
      const isOfNode =
        request.method === 'GET' &&
        pluralOf(request) === 'pods' &&
        decodeURIComponent(request.path).includes('fieldSelector=spec.nodeName=')
      if (!isOfNode) return await inner.send(request, signal)
      const body = { apiVersion: 'v1', kind: 'PodList', metadata: { resourceVersion: '1' }, items: [] }
      const headers = { 'content-type': 'application/json' }
      return { status: 200, headers, body: oneChunk(JSON.stringify(body)) }
    },
  }
}

/** Disruption sees no gangs on nodes. */
export function overlooksRunningGangs({ state: { podGroups } }: Operator): void {
  podGroups.idsOn = () => new Set()
}
