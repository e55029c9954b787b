export { type CleverNodeClass, cleverNodeClassKind } from './nodeclass/types.ts'
export { type NodeGroup, nodeGroupKind } from './nodegroup/types.ts'
