import type { ConditionSchema } from '@tenon/api'

/** Which conditions `Ready` of a NodeClaim depends on (api.md 8.1). */
export const nodeClaimConditions: ConditionSchema = { dependents: ['Launched', 'Registered', 'Initialized'] }

/** Which conditions `Ready` of a NodeOverlay depends on. */
export const nodeOverlayConditions: ConditionSchema = { dependents: ['ValidationSucceeded'] }

/** Which conditions `Ready` of a NodePool depends on. */
export const nodePoolConditions: ConditionSchema = { dependents: ['ValidationSucceeded', 'NodeClassReady'] }
