export default function (app, { requireTokens, Router }) {
  const router = new Router()
  router.get('/api/hubs', requireTokens, ctx => {
    ctx.body = { hasToken: ctx.state.tokens.internal.access_token.length > 0 }
  })
  router.get('/api/never', () => new Promise(() => {}))
  app.use(router.routes())
}
