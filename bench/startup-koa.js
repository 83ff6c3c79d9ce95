/** The least that is a Koa server; how long it takes to listen is the measure for ours. */
import Koa from 'koa'

const app = new Koa()
app.use(ctx => {
  ctx.body = { ok: true }
})
app.listen(Number(process.env.PORT))
