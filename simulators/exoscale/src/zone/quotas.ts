import { ownValue } from '@tenon/api'
import type { Call, Route } from '../api/call.ts'
import { gpuFamilies, type InstanceType } from './catalogue.ts'
import type { CloudContext } from './cloud-state.ts'
import { notFound, refused } from '../api/refusal.ts'
import type { ExoscaleSettings } from '../settings.ts'

interface Quota {
  readonly resource: string
  readonly usage: number
  readonly limit: number
}

/** Quota of one entity; a GPU family counts GPUs, `instance` counts instances. */
function quotaOf(context: CloudContext, entity: string): Quota {
  const limit = ownValue(context.settings.quotas, entity)
  if (limit === undefined) throw notFound('quota', entity)
  const { instances } = context.state
  const usage = entity === 'instance' ? instances.size : instances.gpusOf(entity)
  return { resource: entity, usage, limit }
}

/** Whether the organisation may use a type: families with a quota need one above 0. */
export function isAuthorized(settings: ExoscaleSettings, type: InstanceType): boolean {
  return ownValue(settings.quotas, type.family) !== 0
}

/** Refuses a creation that exceeds a quota. */
export function checkQuotas(context: CloudContext, type: InstanceType, count = 1): void {
  const asked: [entity: string, amount: number][] = [['instance', count]]
  if (gpuFamilies.has(type.family)) asked.push([type.family, count * type.gpus])
  for (const [entity, amount] of asked) {
    if (ownValue(context.settings.quotas, entity) === undefined) continue
    const { usage, limit } = quotaOf(context, entity)
    if (limit < 0 || usage + amount <= limit) continue
    const message = `quota ${entity} exceeded: ${usage} of ${limit} used, ${amount} more asked`
    throw refused(context.settings.quotaRefusalStatus, message)
  }
}

export function quotaRoutes(context: CloudContext): Route[] {
  const listQuotas = () => ({
    quotas: Object.keys(context.settings.quotas).map((entity) => quotaOf(context, entity)),
  })
  const getQuota = (call: Call) => quotaOf(context, call.parameters['entity'] ?? '')
  return [
    { operation: 'list-quotas', method: 'GET', path: '/quota', handle: listQuotas },
    { operation: 'get-quota', method: 'GET', path: '/quota/{entity}', handle: getQuota },
  ]
}
