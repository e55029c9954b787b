/** Every check of `tenon preflight`, in the order in which they are told. */
import type { Check } from '../context.ts'
import { clockSkew } from './clock-skew.ts'
import { cloudDns, cloudRights, credentials } from './cloud.ts'
import { crds } from './crds.ts'
import { disruptionBudgets } from './disruption-budgets.ts'
import { identity } from './identity.ts'
import { otherAutoscalers } from './other-autoscalers.ts'
import { rights } from './rights.ts'
import { room } from './room.ts'
import { serverVersion } from './server-version.ts'
import { webhooks } from './webhooks.ts'

export const checks: readonly Check[] = [
  serverVersion,
  clockSkew,
  identity,
  crds,
  rights,
  credentials,
  cloudRights,
  cloudDns,
  otherAutoscalers,
  webhooks,
  room,
  disruptionBudgets,
]
