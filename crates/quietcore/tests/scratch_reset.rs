use quietcore::time::{self, Duration, Instant};
fn ms(n: u64) -> Duration { Duration::from_millis(n) }
#[quietcore::test(start_paused = true)]
async fn r() {
    use std::future::Future;
    let start = Instant::now();
    let mut s = Box::pin(time::sleep_until(start + ms(600)));
    let w = std::task::Waker::noop();
    let mut cx = std::task::Context::from_waker(w);
    assert!(s.as_mut().poll(&mut cx).is_pending());
    time::advance(ms(100)).await;
    s.as_mut().reset(start + ms(701));
    println!("{:?}", s);
    assert!(s.as_mut().poll(&mut cx).is_pending());
    time::advance(ms(550)).await;
    assert!(s.as_mut().poll(&mut cx).is_pending());
    println!("{:?}", s);
    time::advance(ms(51)).await;
    println!("{:?} {:?}", s, start.elapsed());
    assert!(s.as_mut().poll(&mut cx).is_ready());
}
