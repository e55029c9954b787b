export { WrongViews } from './simulation/faults/wrong-views.ts'
export { Mortality } from './mortality.ts'
export {
  aDeployment,
  aKwokPool,
  deploymentKind,
  type RunningOperator,
  World,
  type WorldOptions,
} from './world.ts'
